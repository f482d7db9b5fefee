// Package safetensors reads and writes safetensors, the weight files of Hugging Face models.
//
// A file is a length, a JSON header of that length, and the tensors' bytes, which the header's offsets must cover
// without a gap:
//
//	8 bytes: N   N bytes: {"__metadata__":{…},"model.norm.weight":{"dtype":"BF16","shape":[1024],"data_offsets":[0,2048]},…}   data
//
// A model's folder holds one such file, model.safetensors, or several shards that model.safetensors.index.json maps the
// tensors to; OpenFolder reads both, and the shards appear as one File. The bytes of a Tensor are
// read when they are asked for; those of a file that changed since it was opened are an error.
//
// The rules of the format are all checked, before anything is allocated for what the header claims:
// its length, names that occur twice, shapes that do not take the bytes given, data that overlaps,
// leaves gaps or ends elsewhere than the file, shard names that leave the folder. F32, F16 and BF16
// are numbers to grove; other dtypes are listed, their bytes can be had, and Load makes an error of
// them. PyTorch's pytorch_model.bin, which older models and many drafters' heads are published as,
// is read too where a folder has no safetensors; nothing in it is run. Every error is a
// *fileerr.Error: file, field, what is wrong, what to do.
package safetensors
