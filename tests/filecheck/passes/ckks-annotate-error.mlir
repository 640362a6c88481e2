// RUN: %opt %s -p 'ckks-annotate-error{ranks=3}' | filecheck %s
// RUN: %opt %s -p 'ckks-annotate-error{largest=4 ranks=3}' | filecheck %s --check-prefix=FOUR
// RUN: %opt %s -p 'ckks-annotate-error{ranks=3},ckks-annotate-error{ranks=3}' | filecheck %s
// RUN: %opt %s -p 'ckks-annotate-error{ranks=3},ckks-annotate-error{ranks=2}' | filecheck %s --check-prefix=TWO

#parameters = #ckks.parameters<
  ring_degree = 1024, moduli = [[1125899906826241], [1099511592961], [1099511678977]],
  special = [1125899906820097], digits = 3, scale = 2^40, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^80, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^80, components = 3, form = evaluation>
!coeff = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = coefficient>
!low = !ckks.ciphertext<level = 0, scale = 2^40, components = 2, form = evaluation>
!down = !ckks.ciphertext<level = 1, scale = 1099511576575.0024, components = 2, form = evaluation>
!down3 = !ckks.ciphertext<level = 1, scale = 1099511576575.0024, components = 3, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>

builtin.module attributes {ckks.parameters = #parameters} {
  // Arguments are fresh: 26.1 bits at N = 2^10 and scale 2^40.
  // CHECK-LABEL: func.func @every_op(
  // FOUR-LABEL: func.func @every_op(
  func.func @every_op(%x: !ct, %y: !ct, %p: !pt, %q: !pt, %v: tensor<3xf64>) {
    %relinearization = fhelium.resource @relinearization : !ckks.key<relinearization>
    %one = fhelium.resource @one : !ckks.key<rotation, 1>
    %two = fhelium.resource @two : !ckks.key<rotation, 2>
    %conjugation = fhelium.resource @conjugation : !ckks.key<conjugation>
    %public = fhelium.resource @public : !ckks.client_key<public>
    %secret = fhelium.resource @secret : !ckks.client_key<secret>
    // FOUR: %negate = ckks.negate {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    // CHECK: %negate = ckks.negate {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %negate = ckks.negate %x : !ct
    // CHECK: %add = ckks.add {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %add = ckks.add %x, %y : !ct
    // CHECK: %sub = ckks.sub {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %sub = ckks.sub %x, %y : !ct
    // CHECK: %add_plain = ckks.add_plain {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %add_plain = ckks.add_plain %x, %p : !ct, !pt
    // CHECK: %sub_plain = ckks.sub_plain {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %sub_plain = ckks.sub_plain %x, %p : !ct, !pt
    // FOUR: %mul = ckks.mul {{.*}}{ckks.precision_bits = 2.360000e+01 : f64}
    // CHECK: %mul = ckks.mul {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %mul = ckks.mul %x, %y : (!ct, !ct) -> !ct3
    // CHECK: %square = ckks.square {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
    %square = ckks.square %x : !ct -> !ct3
    // CHECK: %mul_plain = ckks.mul_plain {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %mul_plain = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct2
    // CHECK: %weighted_sum = ckks.weighted_sum {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %weighted_sum = ckks.weighted_sum %x, %y by %p, %q : (!ct, !ct, !pt, !pt) -> !ct2
    // CHECK: %add_scalar = ckks.add_scalar {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %add_scalar = ckks.add_scalar %x, 0.3 : !ct
    // CHECK: %mul_scalar = ckks.mul_scalar {{.*}}{ckks.precision_bits = 2.810000e+01 : f64}
    %mul_scalar = ckks.mul_scalar %x, 0.25 : !ct -> !ct2
    // CHECK: %mul_integer = ckks.mul_integer {{.*}}{ckks.precision_bits = 2.310000e+01 : f64}
    %mul_integer = ckks.mul_integer %x, -8 : !ct
    // CHECK: %relinearize = ckks.relinearize {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %relinearize = ckks.relinearize %mul with %relinearization : !ct3 -> !ct2
    // CHECK: %rescale = ckks.rescale {{.*}}{ckks.precision_bits = 2.550000e+01 : f64}
    %rescale = ckks.rescale %relinearize : !ct2 -> !down
    // CHECK: %both = ckks.relinearize_rescale {{.*}}{ckks.precision_bits = 2.550000e+01 : f64}
    %both = ckks.relinearize_rescale %mul with %relinearization : !ct3 -> !down
    // CHECK: %rescale_three = ckks.rescale {{.*}}{ckks.precision_bits = 2.370000e+01 : f64}
    %rescale_three = ckks.rescale %mul : !ct3 -> !down3
    // CHECK: %mod_switch = ckks.mod_switch {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %mod_switch = ckks.mod_switch %x : !ct -> !low
    // CHECK: %rotate = ckks.rotate {{.*}}{ckks.precision_bits = 2.600000e+01 : f64}
    %rotate = ckks.rotate %x by 1 with %one : !ct, !ckks.key<rotation, 1>
    // CHECK: %many1, %many2 = ckks.rotate_many {{.*}}{ckks.precision_bits = 2.600000e+01 : f64}
    %many1, %many2 = ckks.rotate_many %x by [1, 2] with %one, %two : (!ct, !ckks.key<rotation, 1>, !ckks.key<rotation, 2>) -> (!ct, !ct)
    // CHECK: %conjugate = ckks.conjugate {{.*}}{ckks.precision_bits = 2.600000e+01 : f64}
    %conjugate = ckks.conjugate %x with %conjugation : !ct
    // CHECK: %to_coefficient = ckks.to_coefficient {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %to_coefficient = ckks.to_coefficient %x : !ct -> !coeff
    // CHECK: %to_evaluation = ckks.to_evaluation {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %to_evaluation = ckks.to_evaluation %to_coefficient : !coeff -> !ct
    // CHECK-NEXT: %encode = ckks.encode %v : tensor<3xf64> -> !pt_L2_s40
    %encode = ckks.encode %v : tensor<3xf64> -> !pt
    // CHECK: %with_public = ckks.encrypt {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %with_public = ckks.encrypt %encode with %public : !pt, !ckks.client_key<public> -> !ct
    // CHECK: %with_secret = ckks.encrypt {{.*}}{ckks.precision_bits = 3.120000e+01 : f64}
    %with_secret = ckks.encrypt %encode with %secret : !pt, !ckks.client_key<secret> -> !ct
    // CHECK-NEXT: %decrypt = ckks.decrypt %add with %secret : !ct_L2_s40 -> !pt_L2_s40
    %decrypt = ckks.decrypt %add with %secret : !ct -> !pt
    // CHECK: %again = ckks.encrypt {{.*}}{ckks.precision_bits = 2.530000e+01 : f64}
    %again = ckks.encrypt %decrypt with %public : !pt, !ckks.client_key<public> -> !ct
    // CHECK-NEXT: %decode = ckks.decode %decrypt : !pt_L2_s40 -> tensor<3xf64>
    %decode = ckks.decode %decrypt : !pt -> tensor<3xf64>
    func.return
  }

  // One error twice costs a bit, two errors half a bit; the slots of one error are several.
  // CHECK-LABEL: func.func @dependence(
  func.func @dependence(%x: !ct, %y: !ct) {
    %one = fhelium.resource @one : !ckks.key<rotation, 1>
    %back = fhelium.resource @back : !ckks.key<rotation, -1>
    // CHECK: %twice = ckks.add {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
    %twice = ckks.add %x, %x : !ct
    // CHECK: %two = ckks.add {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %two = ckks.add %x, %y : !ct
    // CHECK: %rotated = ckks.rotate {{.*}}{ckks.precision_bits = 2.600000e+01 : f64}
    %rotated = ckks.rotate %x by 1 with %one : !ct, !ckks.key<rotation, 1>
    // CHECK: %slots = ckks.add {{.*}}{ckks.precision_bits = 2.550000e+01 : f64}
    %slots = ckks.add %x, %rotated : !ct
    // CHECK: %returned = ckks.rotate {{.*}}{ckks.precision_bits = 2.590000e+01 : f64}
    %returned = ckks.rotate %rotated by -1 with %back : !ct, !ckks.key<rotation, -1>
    // CHECK: %same = ckks.add {{.*}}{ckks.precision_bits = 2.500000e+01 : f64}
    %same = ckks.add %x, %returned : !ct
    // The rounding of a coarse scalar is the same each time.
    // CHECK: %coarse = ckks.mul_scalar {{.*}}{ckks.precision_bits = 1.020000e+01 : f64}
    %coarse = ckks.mul_scalar %x, 0.3 : !ct -> !ckks.ciphertext<level = 2, scale = 2^50, components = 2, form = evaluation>
    // CHECK: %other = ckks.mul_scalar {{.*}}{ckks.precision_bits = 1.020000e+01 : f64}
    %other = ckks.mul_scalar %y, 0.3 : !ct -> !ckks.ciphertext<level = 2, scale = 2^50, components = 2, form = evaluation>
    // CHECK: %sum = ckks.add {{.*}}{ckks.precision_bits = 9.200000e+00 : f64}
    %sum = ckks.add %coarse, %other : !ckks.ciphertext<level = 2, scale = 2^50, components = 2, form = evaluation>
    func.return
  }

  // CHECK-LABEL: func.func @loops(
  func.func @loops(%x: !ct, %n: index) -> !ct {
    %zero = arith.constant 0 : index
    %three = arith.constant 3 : index
    %one = arith.constant 1 : index
    %four = arith.addi %three, %one : index
    %doubled = scf.for %i = %zero to %four step %one iter_args(%y = %x) -> (!ct) {
      // CHECK: %next = ckks.add {{.*}}{ckks.precision_bits = 2.210000e+01 : f64}
      %next = ckks.add %y, %y : !ct
      scf.yield %next : !ct
    }
    // CHECK: } {ckks.precision_bits = 2.210000e+01 : f64}
    // The bounds of an inner loop may depend on the outer one.
    %triangle = scf.for %i = %zero to %three step %one iter_args(%y = %x) -> (!ct) {
      %inner = scf.for %j = %zero to %i step %one iter_args(%z = %y) -> (!ct) {
        // CHECK: %double = ckks.add {{.*}}{ckks.precision_bits = 2.310000e+01 : f64}
        %double = ckks.add %z, %z : !ct
        scf.yield %double : !ct
      }
      scf.yield %inner : !ct
    }
    %skipped = scf.for %i = %three to %zero step %one iter_args(%y = %x) -> (!ct) {
      // CHECK: %never = ckks.negate %{{[^ ]*}} : !ct_L2_s40
      %never = ckks.negate %y {ckks.precision_bits = 99.0 : f64} : !ct
      scf.yield %never : !ct
    }
    // CHECK: } {ckks.precision_bits = 2.610000e+01 : f64}
    // What does not concern ciphertexts may run as often as it likes.
    %count = scf.for %i = %zero to %n step %one iter_args(%k = %zero) -> (index) {
      %next = arith.addi %k, %i : index
      scf.yield %next : index
    }
    func.return %doubled : !ct
  }

  // CHECK-LABEL: func.func @branches(
  func.func @branches(%x: !ct, %y: !ct, %c: i1) -> !ct {
    %worse = scf.if %c -> (!ct) {
      // CHECK: %eightfold = ckks.mul_integer {{.*}}{ckks.precision_bits = 2.310000e+01 : f64}
      %eightfold = ckks.mul_integer %x, 8 : !ct
      scf.yield %eightfold : !ct
    } else {
      scf.yield %y : !ct
    }
    // CHECK: %selected = arith.select {{.*}}{ckks.precision_bits = 2.300000e+01 : f64}
    %selected = arith.select %c, %worse, %y : !ct
    func.return %selected : !ct
  }

  // A function that is called is followed from there, and keeps the worst of its calls.
  // CHECK-LABEL: func.func @caller(
  func.func @caller(%x: !ct) -> !ct {
    // CHECK: %first = func.call {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
    %first = func.call @doubled(%x) : (!ct) -> !ct
    // CHECK: %second = func.call {{.*}}{ckks.precision_bits = 2.410000e+01 : f64}
    %second = func.call @doubled(%first) : (!ct) -> !ct
    // CHECK: %third = func.call {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
    %third = func.call @doubled(%x) : (!ct) -> !ct
    func.return %second : !ct
  }
  // CHECK-LABEL: func.func private @doubled(
  func.func private @doubled(%x: !ct) -> !ct {
    // CHECK: %y = ckks.add {{.*}}{ckks.precision_bits = 2.410000e+01 : f64}
    %y = ckks.add %x, %x : !ct
    func.return %y : !ct
  }

  // A material that is named twice is one value.
  // CHECK-LABEL: func.func @from_elsewhere(
  func.func @from_elsewhere(%xs: tensor<2x!ct>, %i: index) {
    %group = fhelium.resource @group : !dist.group
    %device = fhelium.resource @device : !mem.device
    // CHECK: %a = fhelium.material {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %a = fhelium.material @a : !ct
    // CHECK: %again = fhelium.material {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %again = fhelium.material @a : !ct
    // CHECK: %b = fhelium.material {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %b = fhelium.material @b : !ct
    // CHECK: %same = ckks.add {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
    %same = ckks.add %a, %again : !ct
    // CHECK: %sum = ckks.add {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %sum = ckks.add %a, %b : !ct
    // CHECK: %element = tensor.extract {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %element = tensor.extract %xs[%i] : tensor<2x!ct>
    // CHECK: %sent = dist.broadcast {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %sent = dist.broadcast %element from 0 in %group : !ct
    // CHECK: %moved = mem.transfer {{.*}}{ckks.precision_bits = 2.610000e+01 : f64}
    %moved = mem.transfer %sent to %device : !ct
    func.return
  }

  // Three ranks, each with errors of its own.
  // CHECK-LABEL: func.func @all_reduce(
  // TWO-LABEL: func.func @all_reduce(
  func.func @all_reduce(%x: !ct) {
    %group = fhelium.resource @group : !dist.group
    // CHECK: %sum = dist.all_reduce_add_ciphertext {{.*}}{ckks.precision_bits = 2.530000e+01 : f64}
    // TWO: %sum = dist.all_reduce_add_ciphertext {{.*}}{ckks.precision_bits = 2.560000e+01 : f64}
    %sum = dist.all_reduce_add_ciphertext %x in %group : !ct
    // CHECK: %fold = dist.all_reduce {{.*}} attributes {ckks.precision_bits = 2.530000e+01 : f64}
    // TWO: %fold = dist.all_reduce {{.*}} attributes {ckks.precision_bits = 2.560000e+01 : f64}
    %fold = dist.all_reduce %x in %group : !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      // CHECK: %c = ckks.add {{.*}}{ckks.precision_bits = 2.530000e+01 : f64}
      %c = ckks.add %a, %b : !ct
      dist.yield %c : !ct
    }
    // CHECK: %root = dist.reduce {{.*}} attributes {ckks.precision_bits = 2.530000e+01 : f64}
    %root = dist.reduce %x to 0 in %group : !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.add %a, %b : !ct
      dist.yield %c : !ct
    }
    // CHECK: %share = dist.reduce_scatter {{.*}} attributes {ckks.precision_bits = 2.530000e+01 : f64}
    %share = dist.reduce_scatter %x along 0 in %group : !ct -> !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.add %a, %b : !ct
      dist.yield %c : !ct
    }
    // What only moves stays as precise as it was.
    // CHECK: %all = dist.all_gather %sum {{.*}}{ckks.precision_bits = 2.530000e+01 : f64}
    %all = dist.all_gather %sum along 0 in %group : !ct -> !ct
    // CHECK-NEXT: dist.send %all
    dist.send %all to 1 in %group : !ct
    %count = dist.group_size %group
    func.return
  }

  // What is received is as precise as what is sent, though the receiver comes first.
  // CHECK-LABEL: func.func @messages(
  func.func @messages(%x: !ct, %here: i1) {
    %group = fhelium.resource @group : !dist.group
    scf.if %here {
      // CHECK: %last = dist.recv from 1 {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
      %last = dist.recv from 1 in %group tag 8 : !ct
      // CHECK: %sum = dist.recv from 0 {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
      %sum = dist.recv from 0 in %group tag 7 : !ct
      dist.send %sum to 0 in %group tag 8 : !ct
    } else {
      %double = ckks.add %x, %x : !ct
      // CHECK: dist.send %double
      dist.send %double to 1 in %group tag 7 : !ct
    }
    func.return
  }

  // Several sums in one message, each with the errors of three ranks; what waits knows them.
  // CHECK-LABEL: func.func @started(
  // TWO-LABEL: func.func @started(
  func.func @started(%x: !ct, %y: !ct) {
    %group = fhelium.resource @group : !dist.group
    // CHECK: %twice = ckks.add {{.*}}{ckks.precision_bits = 2.510000e+01 : f64}
    %twice = ckks.add %x, %x : !ct
    // CHECK-NEXT: %pending = dist.start {
    %pending = dist.start {
      // CHECK-NEXT: dist.all_reduce_add_ciphertexts {{.*}}{ckks.precision_bits = 2.430000e+01 : f64}
      %s, %t = dist.all_reduce_add_ciphertexts %x, %twice in %group : !ct, !ct
      dist.yield %s, %t : !ct, !ct
    // CHECK: } : !dist.pending<
    } : !dist.pending<!ct, !ct>
    // CHECK-NEXT: %a, %b = dist.wait %pending {ckks.precision_bits = 2.430000e+01 : f64}
    %a, %b = dist.wait %pending : !ct, !ct
    // CHECK: %first = ckks.negate %a {ckks.precision_bits = 2.530000e+01 : f64}
    // TWO: %first = ckks.negate %a {ckks.precision_bits = 2.560000e+01 : f64}
    %first = ckks.negate %a : !ct
    // CHECK: %second = ckks.negate %b {ckks.precision_bits = 2.430000e+01 : f64}
    // TWO: %second = ckks.negate %b {ckks.precision_bits = 2.460000e+01 : f64}
    %second = ckks.negate %b : !ct
    func.return
  }

  // A message of 1000 at scale 2^40 does not fit the 50 bits of level 0.
  // CHECK-LABEL: func.func @overflow(
  func.func @overflow(%x: !ct) {
    // CHECK: %large = ckks.mul_integer {{.*}}{ckks.precision_bits = 1.610000e+01 : f64}
    %large = ckks.mul_integer %x, 1000 : !ct
    // CHECK: %low = ckks.mod_switch {{.*}}{ckks.precision_bits = 1.610000e+01 : f64, ckks.may_overflow}
    %low = ckks.mod_switch %large : !ct -> !low
    // What is exact has infinitely many bits.
    // CHECK: %nothing = ckks.mul_integer {{.*}}{ckks.precision_bits = 0x7ff0000000000000 : f64}
    %nothing = ckks.mul_integer %x, 0 : !ct
    func.return
  }

  // What has no ciphertexts is left alone.
  // CHECK-LABEL: func.func @others(
  // CHECK-NOT: precision_bits
  func.func @others(%i: index) -> index {
    %j = arith.addi %i, %i : index
    func.return %j : index
  }
  func.func private @external(i32) -> i32
}
