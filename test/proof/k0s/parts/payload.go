// Appends the programs that k0s carries to its executable, as the build of k0s does: `payload EXECUTABLE OUTPUT FILE…`.
// k0s finds each program by its name in a ZIP archive at its own end.
package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) < 4 {
		fail(fmt.Errorf("usage: payload EXECUTABLE OUTPUT FILE…"))
	}
	output, err := os.OpenFile(os.Args[2], os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	fail(err)
	size := copyFrom(output, os.Args[1])
	archive := zip.NewWriter(output)
	archive.SetOffset(size)
	for _, path := range os.Args[3:] {
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: filepath.Base(path), Method: zip.Deflate})
		fail(err)
		copyFrom(entry, path)
	}
	fail(archive.Close())
	fail(output.Close())
}

func copyFrom(to io.Writer, path string) int64 {
	file, err := os.Open(path)
	fail(err)
	defer file.Close()
	size, err := io.Copy(to, file)
	fail(err)
	return size
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
