//go:build ignore

// Trim copies recordings without the events that the comparison does not need, so that
// they are small enough to keep with the code:
//
//	go run scenarios/recording/trim.go [-keep] OUT DIR...
//
// writes OUT/NAME for each DIR. Runs of napi_gro_receive_entry, _exit, netif_receive_skb
// and kfree_skb become one line napisim_dropped with how many of each there were, at the
// time and with the task of the last one: each had cost the machine its time. With -keep
// they stay, and only the long payload of napi_gro_receive_entry is cut.
package main

import (
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"napisim/scenarios/recording/ftrace"
)

// dropped are the events that may go.
var dropped = map[string]bool{
	"napi_gro_receive_entry": true, "napi_gro_receive_exit": true, "netif_receive_skb": true, "kfree_skb": true,
}

func main() {
	log.SetFlags(0)
	keep := flag.Bool("keep", false, "keep all events")
	flag.Parse()
	if flag.NArg() < 2 {
		log.Fatal("want OUT DIR...")
	}
	for _, dir := range flag.Args()[1:] {
		if err := trim(dir, filepath.Join(flag.Arg(0), filepath.Base(dir)), *keep); err != nil {
			log.Fatal(err)
		}
	}
}

// trim copies one recording.
func trim(from, to string, keep bool) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range []string{
		"meta.yaml", "sysctls.txt", "ethtool.txt", "softnet_stat.before", "softnet_stat.after",
		"softirqs.before", "softirqs.after", "interrupts.before", "interrupts.after",
	} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	events, err := ftrace.ReadFile(filepath.Join(from, "trace.txt.gz"))
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(to, "trace.txt.gz"))
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	count, total := map[string]int{}, 0
	for i := range events {
		e := &events[i]
		if keep || !dropped[e.Name] {
			payload, _, _ := strings.Cut(e.Payload, " vlan_tagged=")
			line(z, e, e.Name, payload)
			continue
		}
		count[e.Name]++
		total++
		if i+1 < len(events) && dropped[events[i+1].Name] && events[i+1].CPU == e.CPU && events[i+1].Flags == e.Flags {
			continue
		}
		text := fmt.Sprintf("count=%d", total)
		for _, name := range slices.Sorted(maps.Keys(count)) {
			text += fmt.Sprintf(" %s=%d", name, count[name])
		}
		line(z, e, "napisim_dropped", text)
		clear(count)
		total = 0
	}
	if err := z.Close(); err != nil {
		return err
	}
	return out.Close()
}

// line writes an event with its time as the trace had it.
func line(w io.Writer, e *ftrace.Event, name, payload string) {
	fmt.Fprintf(w, "%16s-%-7d [%03d] %s %12d: %s: %s\n", e.Comm, e.PID, e.CPU, e.Flags, e.At, name, payload)
}
