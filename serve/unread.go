package serve

import "regexp"

// Images, files and sound, which no model reads here. In a new message of the user they are refused. Where a tool
// returned them, and in earlier messages, a line stands for them: agents send these again with every request.

// media matches the types of parts that are not text.
var media = regexp.MustCompile(`image|audio|video|file|document`)

var mediaNames = map[string]string{"image": "An image", "audio": "A recording", "video": "A video", "file": "A file",
	"document": "A file"}

// lineOf returns the line that the model reads in place of a part of some type.
func lineOf(kind string) string {
	return "[" + mediaNames[media.FindString(kind)] + " was here, which you cannot read: you can read text only.]"
}

// checkUnread refuses parts of the user's new message that no model reads here. It warns of those in other messages.
func (v *conversation) checkUnread() error {
	newest := v.newest()
	for i := range v.messages {
		for _, part := range v.messages[i].unread {
			if i == newest {
				return part.fail("%q: this server reads text only: send the message without it", part.value)
			}
			v.tools.warnings = append(v.tools.warnings,
				warning(part.path, "%q: this server reads text only: the model is told so in its place", part.value))
		}
	}
	return nil
}

// newest returns the index of the message of the user that is to be answered. It returns -1 if a tool's result is to be
// answered: many clients put images that a tool returned into a message of the user behind the result.
func (v *conversation) newest() int {
	newest := -1
	for i := len(v.messages) - 1; i >= 0; i-- {
		switch role := v.messages[i].role; {
		case role == "user" && newest < 0:
			newest = i
		case role == "tool":
			return -1
		case role == "assistant" && (newest >= 0 || !v.ContinueFinal.value):
			return newest
		}
	}
	return newest
}
