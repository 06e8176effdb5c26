// kill-at-rename FILE waits for `kubeadm upgrade`, and kills it the moment it has renamed FILE away: before it can rename the
// new file into its place.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	seize       = 0x4206
	syscallInfo = 0x420e
	// Stops at system calls are told from signals, and new threads are watched too.
	options = syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACECLONE
	entry   = 1
	exit    = 2
)

// As in <linux/ptrace.h>.
type info struct {
	op   uint8
	_    [3]byte
	arch uint32
	ip   uint64
	sp   uint64
	nr   uint64
	args [6]uint64
	_    [4]uint64
}

func main() {
	file := os.Args[1]
	// Only the thread that attached may give orders.
	runtime.LockOSThread()
	process := waitForKubeadm()
	attached := attach(process)
	fmt.Printf("watches %d, %d threads\n", process, len(attached))
	renames := map[int]bool{}
	for {
		var status syscall.WaitStatus
		thread, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			fail("kubeadm has ended and never renamed " + file)
		}
		if !status.Stopped() {
			continue
		}
		deliver := 0
		switch signal := status.StopSignal(); {
		case signal == syscall.SIGTRAP|0x80:
			call := look(thread)
			if call.op == entry {
				renames[thread] = isRename(call) && text(process, call.args[1]) == file
			} else if call.op == exit && renames[thread] {
				syscall.Kill(process, syscall.SIGKILL)
				fmt.Println("killed kubeadm after it renamed " + file)
				return
			}
		case status>>16 == 0:
			deliver = int(signal)
		}
		syscall.PtraceSyscall(thread, deliver)
	}
}

func isRename(call info) bool {
	// renameat2 has the same arguments; its number is that of renameat on newer processors.
	return call.nr == syscall.SYS_RENAMEAT || call.nr == 316 || call.nr == 276
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

func waitForKubeadm() int {
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range files {
			line, _ := os.ReadFile(name)
			words := strings.Split(string(line), "\x00")
			isUpgrade := filepath.Base(words[0]) == "kubeadm" && len(words) > 2 && words[1] == "upgrade"
			// A single phase, as preflight, renames nothing.
			if isUpgrade && !strings.Contains(string(line), "\x00phase\x00") {
				process, _ := strconv.Atoi(strings.Split(name, "/")[2])
				return process
			}
		}
	}
	fail("there was no `kubeadm upgrade` in ten minutes")
	return 0
}

// Threads may begin while others are being attached.
func attach(process int) map[int]bool {
	attached := map[int]bool{}
	for grown := true; grown; {
		grown = false
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", process))
		for _, task := range tasks {
			thread, _ := strconv.Atoi(task.Name())
			if attached[thread] {
				continue
			}
			if _, _, failed := syscall.Syscall6(syscall.SYS_PTRACE, seize, uintptr(thread), 0, options, 0, 0); failed == 0 {
				// PTRACE_INTERRUPT: it stops, and from then on at every system call.
				syscall.Syscall6(syscall.SYS_PTRACE, 0x4207, uintptr(thread), 0, 0, 0, 0)
				grown = true
			}
			attached[thread] = true
		}
	}
	return attached
}

func look(thread int) info {
	var call info
	syscall.Syscall6(syscall.SYS_PTRACE, syscallInfo, uintptr(thread), unsafe.Sizeof(call), uintptr(unsafe.Pointer(&call)), 0, 0)
	return call
}

func text(process int, address uint64) string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", process))
	if err != nil {
		return ""
	}
	defer memory.Close()
	buffer := make([]byte, 256)
	read, _ := memory.ReadAt(buffer, int64(address))
	path, _, _ := bytes.Cut(buffer[:read], []byte{0})
	return string(path)
}
