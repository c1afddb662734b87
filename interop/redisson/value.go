package interop

// Values cross between Go and Java as these types:
//
//	Go                Java
//	nil               null
//	bool              Boolean
//	string            String
//	UTF16             String that is not valid UTF-16
//	[]byte            byte[]
//	int32             Integer
//	int64             Long
//	[]any             ArrayList

// UTF16 is a Java String as its units. A String with a lone surrogate has no other form in Go; one
// without comes back from Java as a string.
type UTF16 []uint16
