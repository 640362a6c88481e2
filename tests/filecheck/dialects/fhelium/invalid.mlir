// RUN: %opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{found the resource type !ckks.key<relinearization>, expected a type of data; write `fhelium.resource` for a live object}}
%key = fhelium.material @key : !ckks.key<relinearization>

// -----

// expected-error@+1 {{found the resource type !dist.group, expected a type of data}}
%group = "fhelium.material"() <{symbol = @group}> : () -> !dist.group

// -----

// expected-error@+1 {{i32 should be of attribute subclassing `ResourceType`}}
%number = fhelium.resource @number : i32

// -----

// expected-error@+1 {{Expected SymbolRefAttr with no nested symbols}}
%nested = "fhelium.resource"() <{symbol = @outer::@inner}> : () -> !dist.group

// -----

// expected-error@+1 {{property 'symbol' expected in operation 'fhelium.resource'}}
%unnamed = "fhelium.resource"() : () -> !dist.group

// -----

// expected-error@+1 {{found ':', expected attribute}}
%unnamed = fhelium.material : f64

// -----

// The verifier takes any value for an assignment; whoever reads it says what it must be.
%wrong = fhelium.material @wrong {fhelium.implementation = 5 : i64} : f64
