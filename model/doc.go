// Package model holds the words that every component of napisim shares: the frame
// on the wire, the skb in the kernel, the named stages that cost CPU time, and the
// reasons for which something is lost.
//
// They are plain data. The subpackages hold what acts on them: cpu (cores and
// their scheduler), link, tcp, traffic and host.
package model
