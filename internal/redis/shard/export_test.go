package shard

import "time"

func init() { readAgain, settled = 200*time.Millisecond, time.Second }
