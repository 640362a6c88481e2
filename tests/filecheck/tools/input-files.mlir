// RUN: not fhelium-opt %t.missing.mlir 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not fhelium-opt %S 2>&1 | filecheck %s --check-prefix=FOLDER
// RUN: printf 'func.func\nx\xff\n' > %t.bin
// RUN: not fhelium-opt %t.bin 2>&1 | filecheck %s --check-prefix=BYTES
// RUN: cp %s %t.ext
// RUN: %opt %t.ext | filecheck %s

// MISSING:     fhelium-opt: error: cannot read '{{.*}}.missing.mlir': No such file or directory
// MISSING-NOT: {{.}}
// FOLDER:      fhelium-opt: error: cannot read '{{.*}}': Is a directory
// FOLDER-NOT:  {{.}}
// BYTES:       {{.*}}.bin:2:2: error: found the byte 0xff, expected UTF-8 text: save the file as UTF-8
// BYTES-NOT:   Traceback

// A file with an extension that no frontend has is MLIR text.
// CHECK: builtin.module {
