// RUN: fhelium-opt -t dot %s | filecheck %s

// Names of a program are text in a picture of it, and nothing else.

// CHECK: label="@\"];\\n evil \\l [label=\\"
// CHECK: [label="fhelium.resource @a\"]; b -> c; \\N\n", tooltip="!dist.group"
func.func @"\22];\5Cn evil \5Cl [label=\5C"() {
  %0 = fhelium.resource @"a\22]; b -> c; \5CN\0A" : !dist.group
  func.return
}
