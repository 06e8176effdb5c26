// Stand-in for K3s: one file that contains a real kubelet and a real kubectl of its version, as K3s does. The linker
// sets the version. `k3s server` and `k3s agent` run the kubelet with the arguments that follow, and end with it.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

//go:embed kubelet
var kubelet []byte

//go:embed kubectl
var kubectl []byte

var version string

// K3s unpacks its programs here, into a folder for each of its versions.
const data = "/var/lib/rancher/k3s/data"

func main() {
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "-v", "--version":
		fmt.Printf("k3s version %s (stand-in)\ngo version %s\n", version, runtime.Version())
	case "kubectl":
		become(unpack("kubectl", kubectl), append([]string{"kubectl"}, os.Args[2:]...))
	case "server", "agent":
		run(os.Args[2:])
	default:
		fail(fmt.Errorf("this stand-in has no command %q", verb))
	}
}

func run(words []string) {
	own, err := os.Executable()
	fail(err)
	if filepath.Dir(filepath.Dir(filepath.Dir(own))) != data {
		// As K3s does: the file that was started is not busy, so an upgrade can write into it. The name of the process
		// stays.
		content, err := os.ReadFile(own)
		fail(err)
		become(unpack("k3s", content), os.Args)
	}
	words = hide(words)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	// The kernel ends the kubelet when the thread that started it ends.
	runtime.LockOSThread()
	child := exec.Command(unpack("kubelet", kubelet), words...)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fmt.Println("k3s", version, "starts its kubelet")
	fail(child.Start())
	go func() {
		<-ends
		child.Process.Signal(syscall.SIGTERM)
	}()
	child.Wait()
}

// Makes the command line of this process `/usr/local/bin/k3s server` or `agent`, without further arguments, as K3s does.
// Returns a copy of the arguments, which are in the same memory.
func hide(words []string) []string {
	title := os.Args[0] + " " + os.Args[1]
	copies := make([]string, len(words))
	size := 0
	for _, word := range os.Args {
		size += len(word) + 1
	}
	for index, word := range words {
		copies[index] = strings.Clone(word)
	}
	line := unsafe.Slice(unsafe.StringData(os.Args[0]), size)
	clear(line[copy(line, title):])
	return copies
}

// Returns the path of the program. Another process may unpack it at the same time.
func unpack(name string, content []byte) string {
	folder := filepath.Join(data, version, "bin")
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	fail(os.MkdirAll(folder, 0o755))
	own := fmt.Sprintf("%s.%d", path, os.Getpid())
	fail(os.WriteFile(own, content, 0o755))
	fail(os.Rename(own, path))
	return path
}

func become(program string, words []string) {
	fail(syscall.Exec(program, words, os.Environ()))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
