// Package layout holds the test that keeps packages importing in one direction only.
package layout
