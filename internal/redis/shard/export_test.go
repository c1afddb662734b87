package shard

import "time"

func init() { settled = time.Second } // so that tests need not wait
