// Templates: the shapes of static trees.

package medusa

import "fmt"

// Template is the shape of a static tree: the parents of nodes 1, 2 and so on, the most valuable
// first. The k-th child of a node on the list gets the candidate of rank k of its depth. A tree of
// fewer nodes is a beginning of the list.
//
//	Template{0, 1, 0}    the root's two likeliest candidates, and below the first the likeliest of the next depth
type Template []int32

// PaperTemplate is the tree of Medusa's release for models of 7B (mc_sim_7b_63): 63 nodes below the
// root, of depths 1 to 4 10, 28, 23 and 2.
var PaperTemplate = Template{
	0, 1, 0, 1, 0, 2, 3, 1, 0, 1, 0, 1, 5, 1, 2, 0, 1, 0, 1, 4, 3, 0, 1, 2, 9, 1, 0, 0, 7, 8, 3, 2,
	11, 5, 2, 2, 6, 4, 2, 10, 16, 3, 2, 2, 2, 18, 12, 3, 22, 4, 13, 9, 5, 27, 14, 3, 7, 8, 28, 17, 6, 3, 19,
}

// most nodes of a template.
const mostNodes = 1 << 12

func (t Template) check() error {
	if len(t) > mostNodes {
		return fmt.Errorf("a tree template of %d nodes: want at most %d", len(t), mostNodes)
	}
	for i, parent := range t {
		if parent < 0 || int(parent) > i {
			return fmt.Errorf("tree template: the parent of node %d is %d: want a node before it", i+1, parent)
		}
	}
	return nil
}

// paths returns the ranks that lead to each node, as Medusa's authors write a template.
func (t Template) paths() [][]int {
	paths, children := [][]int{{}}, make([]int, len(t)+1)
	for _, parent := range t {
		path := append(paths[parent][:len(paths[parent]):len(paths[parent])], children[parent])
		children[parent]++
		paths = append(paths, path)
	}
	return paths[1:]
}

// templateOf is the inverse of Template.paths. Paths may come in any order that has each after its
// beginnings.
func templateOf(paths [][]int) (t Template, err error) {
	nodes, children := map[string]int32{"[]": 0}, map[int32]int{}
	for i, path := range paths {
		if len(path) == 0 {
			return nil, fmt.Errorf("path %d of the tree template is empty: want one rank or more", i)
		}
		parent, ok := nodes[fmt.Sprint(path[:len(path)-1])]
		if rank := path[len(path)-1]; !ok || rank != children[parent] {
			return nil, fmt.Errorf("path %v of the tree template: want its beginning and all lower ranks before it",
				path)
		}
		children[parent]++
		t = append(t, parent)
		nodes[fmt.Sprint(path)] = int32(len(t))
	}
	return t, t.check()
}
