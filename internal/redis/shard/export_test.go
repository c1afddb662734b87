package shard

import "time"

func init() { settled, wholeFor = time.Second, time.Second } // so that tests need not wait
