package main

import (
	"fmt"
	"time"
)

// Roles of a node. There is no fourth: a node that cannot tell is cut off.
const (
	rolePrimary  = "primary"  // it holds the lease, and its application may write
	roleFollower = "follower" // another node holds the lease, or none does yet
	roleCutOff   = "cut off"  // it cannot tell who holds the lease
)

// RoleReport is what a node is under the lease.
type RoleReport struct {
	Role       string    `json:"role"`
	Node       string    `json:"node"`
	Generation uint64    `json:"generation"`         // of the lease; 0: there was none yet
	Remaining  int64     `json:"remaining_ms"`       // of the own lease; 0 unless primary
	Degraded   bool      `json:"degraded,omitempty"` // the lease was not renewed for a while
	Holder     string    `json:"holder,omitempty"`   // the node that holds it
	Primary    string    `json:"primary,omitempty"`  // where the primary is reached, as it says
	Since      time.Time `json:"since,omitzero"`     // when the role began
	Error      string    `json:"error,omitempty"`
	Succession
}

// Succession is a lease that its holder gives up, or has given up for a node.
type Succession struct {
	HandingOver bool   `json:"handing_over,omitempty"`
	Successor   string `json:"successor,omitempty"` // node that it is for; empty: any
}

// text follows upon what the role is.
func (s Succession) text() string {
	switch {
	case !s.HandingOver:
		return ""
	case s.Successor == "":
		return ", handing over"
	}
	return ", handing over to " + s.Successor
}

// String is the role in one line.
func (r RoleReport) String() string {
	text := fmt.Sprintf("node %s: %s, generation %d", r.Node, r.Role, r.Generation)
	if r.Role == rolePrimary {
		left := time.Duration(r.Remaining) * time.Millisecond
		text += fmt.Sprintf(", lease for another %s", left.Round(100*time.Millisecond))
	} else if r.Holder != "" {
		text += ", primary " + r.Holder
	}
	text += r.Succession.text()
	if r.Degraded {
		text += ", not renewed for a while"
	}
	if r.Error != "" {
		text += ": " + r.Error
	}
	return text
}
