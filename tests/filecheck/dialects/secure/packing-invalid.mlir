// RUN: %opt %s --split-input-file --verify-diagnostics

// Every fault of a layout, and of the ops that packing makes.

// expected-error@+1 {{found slots 48, expected a power of two}}
"test.op"() {l = #secure.layout<slots = 48, batch = 4, period = 4, grid = [4], strides = [1]>} : () -> ()

// -----

// expected-error@+1 {{found 2097152 slots, expected at most 1048576}}
"test.op"() {l = #secure.layout<slots = 2097152, batch = 4, period = 4, grid = [4], strides = [1]>} : () -> ()

// -----

// expected-error@+1 {{found a period of 16 positions of 8 slots, expected at most 64 slots in all}}
"test.op"() {l = #secure.layout<slots = 64, batch = 8, period = 16, grid = [4], strides = [1]>} : () -> ()

// -----

// expected-error@+1 {{found 2 sizes and 1 strides, expected the same number of both, and at least one}}
"test.op"() {l = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4, 1], strides = [1]>} : () -> ()

// -----

// expected-error@+1 {{found elements over 7 positions, expected at most 4, the period}}
"test.op"() {l = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [2]>} : () -> ()

// -----

// expected-error@+1 {{found strides [1, 1] that put two elements in one position, expected strides that keep them apart}}
"test.op"() {l = #secure.layout<slots = 64, batch = 4, period = 8, grid = [2, 2], strides = [1, 1]>} : () -> ()

// -----

// expected-error@+1 {{found size 0, expected at least 1}}
"test.op"() {l = #secure.layout<slots = 64, batch = 4, period = 8, grid = [0], strides = [1]>} : () -> ()

// -----

// expected-error@+1 {{found no 'strides', expected all of the fields 'slots', 'batch', 'period', 'grid', 'strides'}}
"test.op"() {l = #secure.layout<slots = 64, batch = 4, period = 8, grid = [2]>} : () -> ()

// -----

// expected-error@+1 {{found a layout of 4 elements, expected 3, as many as the tensor has}}
func.func private @f(!secure.tensor<3, #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>>)

// -----

#a = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>
#b = #secure.layout<slots = 64, batch = 8, period = 4, grid = [4], strides = [1]>
// expected-error@+1 {{found rows in 64 slots of 4 samples and columns in 64 of 8, expected one of both: a rotation keeps them}}
"test.op"() {l = #secure.diagonals<rows = #a, columns = #b>} : () -> ()

// -----

// expected-error@+1 {{found 3 : i64, expected a #secure.layout}}
"test.op"() {l = #secure.diagonals<rows = 3, columns = 4>} : () -> ()

// -----

#a = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>
%x = "test.op"() : () -> !secure.tensor<4>
// expected-error@+1 {{'secure.convert_layout': found a conversion from !secure.tensor<4> to !secure.tensor<4, #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>>, expected a #secure.layout on both}}
%y = secure.convert_layout %x : !secure.tensor<4> -> !secure.tensor<4, #a>

// -----

#a = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>
%x = "test.op"() : () -> !secure.tensor<4, #a>
// expected-error@+1 {{'secure.convert_layout': found a result of shape 2x2, expected 4: a conversion keeps the shape}}
%y = secure.convert_layout %x : !secure.tensor<4, #a> -> !secure.tensor<2x2, #a>

// -----

%k = "test.op"() : () -> tensor<4x1x3xf64>
// expected-error@+1 {{'secure.toeplitz': found a kernel of 3 dimensions, and 3 for the image, 2 strides and 2 paddings, expected 4, 3, 2 and 2}}
%t = secure.toeplitz %k on [1, 8, 8] stride [1, 1] padding [0, 0] groups 1 : tensor<4x1x3xf64> -> tensor<144x64xf64>

// -----

%k = "test.op"() : () -> tensor<4x1x3x3xf64>
// expected-error@+1 {{'secure.toeplitz': found a size, stride or number of groups below 1, or a padding below 0, expected none}}
%t = secure.toeplitz %k on [1, 8, 8] stride [0, 1] padding [0, 0] groups 1 : tensor<4x1x3x3xf64> -> tensor<144x64xf64>

// -----

%k = "test.op"() : () -> tensor<4x1x3x3xf64>
// expected-error@+1 {{'secure.toeplitz': found 3 groups of a kernel of shape 4x1x3x3 on 3 channels, expected groups that divide both kinds of channels}}
%t = secure.toeplitz %k on [3, 8, 8] stride [1, 1] padding [0, 0] groups 3 : tensor<4x1x3x3xf64> -> tensor<144x64xf64>

// -----

%k = "test.op"() : () -> tensor<4x1x9x3xf64>
// expected-error@+1 {{'secure.toeplitz': found a kernel of shape 4x1x9x3, expected one that fits into the padded image}}
%t = secure.toeplitz %k on [1, 8, 8] stride [1, 1] padding [0, 0] groups 1 : tensor<4x1x9x3xf64> -> tensor<144x64xf64>

// -----

%k = "test.op"() : () -> tensor<4x1x3x3xf64>
// expected-error@+1 {{'secure.toeplitz': found a result of shape 256x64, expected 144x64: one row a result, one column a pixel}}
%t = secure.toeplitz %k on [1, 8, 8] stride [1, 1] padding [0, 0] groups 1 : tensor<4x1x3x3xf64> -> tensor<256x64xf64>

// -----

#a = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>
%w = "test.op"() : () -> tensor<4x5xf64>
// expected-error@+1 {{'secure.diagonal': found a matrix of shape 4x5, expected 4x4: the layouts have that many elements}}
%d = secure.diagonal %w by 0 shifted 0 in #secure.diagonals<rows = #a, columns = #a> : tensor<4x5xf64> -> tensor<64xf64>

// -----

#a = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>
%w = "test.op"() : () -> tensor<4x4xf64>
// expected-error@+1 {{'secure.diagonal': found a result of shape 32, expected 64: a diagonal fills the slots}}
%d = secure.diagonal %w by 0 shifted 0 in #secure.diagonals<rows = #a, columns = #a> : tensor<4x4xf64> -> tensor<32xf64>

// -----

// expected-error@+1 {{'secure.mask': found a period of 8 positions of 3 slots, expected positive numbers whose product divides 64, the slots}}
%m = secure.mask [0] every 8 batch 3 : tensor<64xf64>

// -----

// expected-error@+1 {{'secure.mask': found a position outside of the period 0 to 7}}
%m = secure.mask [8] every 8 batch 2 : tensor<64xf64>

// -----

#a = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>
%b = "test.op"() : () -> tensor<3xf64>
// expected-error@+1 {{'secure.pack': found an operand of shape 3, expected 4 elements, as many as the layout has}}
%p = secure.pack %b to #a : tensor<3xf64> -> tensor<64xf64>

// -----

#a = #secure.layout<slots = 64, batch = 4, period = 4, grid = [4], strides = [1]>
%b = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{'secure.pack': found an operand of type tensor<4xf32>, expected a secret tensor, or a public one of f64 with known sizes}}
%p = secure.pack %b to #a : tensor<4xf32> -> tensor<64xf64>

// -----

// expected-error@+1 {{found a grid of 9 elements, expected at most 8, the period}}
"test.op"() {l = #secure.layout<slots = 64, batch = 4, period = 8, grid = [3, 3], strides = [1, 2]>} : () -> ()
