// Stand-in for the programs of two images that an upgrade only waits for: it stays alive, and answers the probes of CoreDNS.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-v" {
		fmt.Println("pause.c stand-in")
		return
	}
	if filepath.Base(os.Args[0]) == "coredns" {
		ok := http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprintln(answer, "OK") })
		go func() { fmt.Println(http.ListenAndServe(":8080", ok)) }()
		go func() { fmt.Println(http.ListenAndServe(":8181", ok)) }()
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	<-ends
}
