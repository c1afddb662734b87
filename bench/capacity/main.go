// Command capacity computes how many servers, nodes and bytes a load takes on each backend, from the
// measurements of make report.
//
// go run ./bench/capacity -pending 1e9 -rate 1e6
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/delayq/delayq/bench/internal/capacity"
	"github.com/delayq/delayq/bench/internal/raw"
)

func main() {
	l := capacity.Defaults
	path := flag.String("raw", "docs/benchmarks/raw.json", "what make report has measured")
	flag.Float64Var(&l.Pending, "pending", l.Pending, "pending messages")
	flag.Float64Var(&l.Rate, "rate", l.Rate, "messages a second, pushed and handed out")
	flag.Float64Var(&l.ServerMemory, "server-memory", l.ServerMemory, "bytes of messages that a server may hold")
	flag.Float64Var(&l.Busy, "busy", l.Busy, "share of the time that a server may be busy")
	flag.IntVar(&l.Replicas, "replicas", l.Replicas, "of each Redis server")
	flag.IntVar(&l.NodeCores, "node-cores", l.NodeCores, "cores of a node")
	flag.Float64Var(&l.NodeMemory, "node-memory", l.NodeMemory, "bytes of memory of a node")
	flag.Parse()
	f, err := raw.Load(*path)
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
	capacity.Print(os.Stdout, f, l)
}
