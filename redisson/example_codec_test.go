package redisson_test

import (
	"errors"
	"fmt"

	"github.com/delayq/delayq/redisson"
)

// What a repair tool does with an entry of the zset redisson_delay_queue_timeout:{orders}.
func ExampleParseMember() {
	entry := []byte("\x08\x01\x02\x03\x04\x05\x06\x07\x08\x06\x00\x00\x00\x00\x00\x00\x00\x03hell\xef")

	m, err := redisson.ParseMember(entry)
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := redisson.Kryo5String.Decode(m.Payload)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v, id %x: %s\n", m.Format, m.ID, body)
	// Output: V2, id 0102030405060708: hello
}

// The bytes that Kryo5Codec, the default of Redisson since 3.19.0, writes for a string.
func ExampleCodec() {
	payload, err := redisson.Kryo5String.Encode([]byte("order 17"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n", payload)
	// Output: "\x03order 1\xb7"
}

// A codec returns objects that it cannot read unchanged: here Java pushed an Integer.
func ExampleUnreadableError() {
	_, err := redisson.Kryo5String.Decode([]byte{0x02, 0x02})

	var foreign *redisson.UnreadableError
	if errors.As(err, &foreign) {
		fmt.Printf("%s: %x\n", foreign.What, foreign.Bytes)
	}
	fmt.Println(err)
	// Output:
	// kryo5: 0202
	// unreadable kryo5: an object with the class id 02, only strings, 03, are read: [0202] (2 bytes)
}

// A body for Java objects is JSON that names its class.
func ExampleCodec_object() {
	payload, err := redisson.JacksonObject.Encode([]byte(`{"@class": "com.shop.Order", "id": "o-1", "at": 1700000000000}`))
	fmt.Println(string(payload), err)

	_, err = redisson.JacksonObject.Encode([]byte(`{"id": "o-1"}`))
	fmt.Println(err != nil)
	// Output:
	// {"@class":"com.shop.Order","id":"o-1","at":1700000000000} <nil>
	// true
}
