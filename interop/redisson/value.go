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
//	float64           Double
//	[]any             ArrayList
//	map[string]any    HashMap
//	Order             interop.Order
//	Other             anything else; from Java only

// UTF16 is a Java String as its units. A String with a lone surrogate has no other form in Go; one
// without comes back from Java as a string.
type UTF16 []uint16

// Order is the Java class interop.Order: an object of an application's own.
type Order struct {
	ID     string
	Amount int64
	Tags   []string
}

// Other is an object that has no form in Go: its class and its toString.
type Other struct{ Class, Text string }
