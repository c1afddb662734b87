// Package verdict holds other queues to the rules of delayq's own conformance suite. Each has an adapter, as thin as it can
// be, over its own client: it mends nothing and makes nothing worse. The page docs/peers.md is made of what the suite finds:
//
//	cd bench/peers && go test ./verdict -run TestVerdicts -update -timeout 30m
//
// It runs in real time, since other queues know no other, on servers that the tests start.
package verdict
