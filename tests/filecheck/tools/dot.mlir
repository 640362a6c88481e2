// RUN: fhelium-opt -t dot %s | filecheck %s
// RUN: not fhelium-opt -t dot{color=red} %s 2>&1 | filecheck %s --check-prefix=OPTION

// A box an op and argument, coloured by level (hue) and scale (shade); an arrow a use. What a region
// yields stands for the results of its op; dashed arrows come from keys and lead into regions.

// OPTION: fhelium-opt: error: target 'dot' has no options, found 'color'

!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 0, scale = 2^40, components = 2, form = evaluation>
!none = !ckks.ciphertext

func.func @main(%x: !ct, %none: !none, %n: index) -> !low {
  %key = fhelium.resource @turn : !ckks.key<rotation, 1>
  %turned = ckks.rotate %x by 1 with %key : !ct, !ckks.key<rotation, 1>
  %low = ckks.mod_switch %turned : !ct -> !low
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %sum = scf.for %i = %zero to %n step %one iter_args(%carried = %low) -> (!low) {
    %next = ckks.add %carried, %carried : !low
    scf.yield %next : !low
  }
  func.return %sum : !low
}

// CHECK:      digraph program {
// CHECK:        subgraph cluster_1 {
// CHECK-NEXT:     label="@main";
// CHECK-NEXT:     n1 [label="%x\nlevel 1, scale 2^40", tooltip="!ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>", fillcolor="#ee8787", style="filled,rounded"];
// CHECK-NEXT:     n2 [label="%none\nno state yet", tooltip="!ckks.ciphertext", fillcolor="#ffffff", style="filled,rounded"];
// CHECK-NEXT:     n3 [label="%n", tooltip="index", fillcolor="#e4e4e4", style="filled,rounded"];
// CHECK-NEXT:     n4 [label="%key\nfhelium.resource @turn", tooltip="!ckks.key<rotation, 1>", fillcolor="#e4e4e4"];
// CHECK-NEXT:     n5 [label="%turned\nckks.rotate\nlevel 1, scale 2^40", tooltip="{{[^"]*}}", fillcolor="#ee8787"];
// CHECK-NEXT:     n6 [label="%low\nckks.mod_switch\nlevel 0, scale 2^40", tooltip="{{[^"]*}}", fillcolor="#87a3ee"];
// CHECK:          n14 [label="func.return", tooltip="", fillcolor="#e4e4e4"];
// CHECK-NEXT:     subgraph cluster_10 {
// CHECK-NEXT:       label="scf.for";
// CHECK-NEXT:       n10 [label="%i"
// CHECK-NEXT:       n11 [label="%carried\nlevel 0, scale 2^40"
// CHECK-NEXT:       n12 [label="%next\nckks.add\nlevel 0, scale 2^40"
// CHECK-NEXT:       n13 [label="scf.yield"
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   n1 -> n5;
// CHECK-NEXT:   n4 -> n5 [style=dashed, color=gray60];
// CHECK-NEXT:   n5 -> n6;
// CHECK:        n9 -> n10 [style=dashed, color=gray60];
// CHECK-NEXT:   n9 -> n11 [style=dashed, color=gray60];
// One arrow for a value that is used twice.
// CHECK-NEXT:   n11 -> n12;
// CHECK-NEXT:   n12 -> n13;
// CHECK-NEXT:   n13 -> n14;
// CHECK-NEXT: }
