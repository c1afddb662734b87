package main

import "syscall"

// endWithParent has the kernel kill a command when the thread that started it ends, as after kill
// -9 of the program.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
