package testenv

import (
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"
)

// epmd tells Erlang nodes each other's addresses. Erlang would start one that is never ended, or use
// the machine's own.
type epmd struct{ local }

func startEpmd() (*epmd, error) {
	l, err := newLocal("epmd")
	if err != nil {
		return nil, err
	}
	e := &epmd{l}
	return e, e.launch(func() (err error) {
		if e.port, err = freePort(); err != nil {
			return err
		}
		return e.start()
	})
}

func (e *epmd) start() error {
	cmd := exec.Command(findErlang("epmd"), "-port", strconv.Itoa(e.port), "-address", localhost)
	return e.run(cmd, func() error { return askEpmd(e.port) }, "") // it ends for no other reason
}

// askEpmd asks for the names of the nodes. The reply begins with the port.
func askEpmd(port int) error {
	conn, err := net.DialTimeout("tcp", address(port), time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // of an open connection this cannot fail
	if _, err = conn.Write([]byte{0, 1, 'n'}); err != nil {
		return err
	}
	var reply uint32
	if err = binary.Read(conn, binary.BigEndian, &reply); err == nil && reply != uint32(port) {
		err = fmt.Errorf("it replies %d instead of %d", reply, port)
	}
	return err
}
