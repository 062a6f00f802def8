"""`__shared__` in every form that C++ allows, and every place where it is only text."""

from __future__ import annotations

import re

import pytest

from audit.compile.rewrite import rewrite
from audit.errors import CompileError


def inside(declaration: str) -> str:
    """What one declaration in a kernel becomes."""
    text = rewrite(f"void f() {{ {declaration} }}", "k.cu")
    head, _, rest = text.partition("void f() { ")
    assert head == '#line 1 "k.cu"\n'
    return rest.removesuffix(" }")


def typedefs(text: str) -> list[str]:
    return [re.sub(r"_simt\d+_type", "", part.strip()) for part in re.findall(r"typedef ([^;]*);", text)]


@pytest.mark.parametrize(
    ("declaration", "names", "typedef"),
    [
        ("__shared__ float x;", ["x"], "float x"),
        ("__shared__ float tile[32][33];", ["tile"], "float tile[32][33]"),
        ("__shared__ float a[N + 1], *p, b;", ["a", "p", "b"], "float a[N + 1], *p, b"),
        ("__shared__ volatile unsigned long long int n;", ["n"], "volatile unsigned long long int n"),
        ("static __shared__ int s[4];", ["s"], "int s[4]"),
        ("__shared__ static int s[4];", ["s"], "int s[4]"),
        ("float __shared__ x[2];", ["x"], "float x[2]"),
        ("__shared__ Pair<int, Pair<A, B>> pairs[2], one;", ["pairs", "one"], "Pair<int, Pair<A, B>> pairs[2], one"),
        ("__shared__ typename Traits<T>::Line lines[sizeof(T) > 2 ? 1 : 2];", ["lines"], None),
        ("__shared__ float (*rows)[33];", ["rows"], "float (*rows)[33]"),
        ("__shared__ struct { int a, b; } both;", ["both"], None),
        ("__shared__ struct Named { int a; float b[2]; } many[3];", ["many"], None),
        ("__shared__ ::grouped::Memory m;", ["m"], "::grouped::Memory m"),
        ("__shared__ decltype(a + b) sum[f(1, 2)];", ["sum"], "decltype(a + b) sum[f(1, 2)]"),
        ("__shared__ unsigned char\n  bytes[4]  // comment, with ; and [\n  ;", ["bytes"], "unsigned char bytes[4]"),
    ],
)
def test_static_declarations(declaration: str, names: list[str], typedef: str | None) -> None:
    text = inside(declaration)
    assert re.findall(r"& (\w+) = \*static_cast", text) == names
    assert re.findall(r"SharedObject (\w+)_simt0_object", text) == names
    assert "__shared__" not in text
    assert text.count("\n") == declaration.count("\n")
    if typedef is not None:
        assert typedefs(text) == [typedef]


@pytest.mark.parametrize(
    ("declaration", "alignment"),
    [
        ("__shared__ alignas(16) char x[4];", "alignas(16) char bytes"),
        ("alignas(float4) __shared__ char x[4];", "alignas(float4) char bytes"),
        ("__shared__ __align__(8) char x[4];", "__align__(8) char bytes"),
        ("__shared__ char __attribute__((aligned(64))) x[4];", "__attribute__((aligned(64))) char bytes"),
    ],
)
def test_alignment_is_kept(declaration: str, alignment: str) -> None:
    text = inside(declaration)
    assert alignment in text
    assert typedefs(text) == ["char x[4]"]
    assert "simt::stricter(alignof(x_simt0_type), alignof(x_simt0_align))" in text


def test_dynamic_memory() -> None:
    text = inside("extern __shared__ __align__(16) unsigned char memory[];")
    assert typedefs(text) == ["unsigned char memory[]"]
    assert "= *static_cast<memory_simt0_type*>(simt::dynamic_shared(simt::stricter(" in text
    assert "extern" not in text


@pytest.mark.parametrize(
    "text",
    [
        "// __shared__ int x;\n",
        "/* a\n __shared__ int x; */ int y;",
        'const char* s = "__shared__ int x;"; char c = \'"\';',
        'auto s = R"x(__shared__ int y; ")x";',
        "int my__shared__thing;",
        "#if 0 // __shared__ int x;\n#endif\n",
        "int million = 1'000'000; // it's\n",
    ],
)
def test_text_is_untouched(text: str) -> None:
    assert rewrite(text, "k.cu") == '#line 1 "k.cu"\n' + text


def test_lines_and_the_rest_of_the_source_stay() -> None:
    source = "\n".join(
        [
            'namespace a { extern "C" {',
            "template <int N> __global__ void k(int* p) {",
            "  case 1: __shared__ int x",
            "      [N],",
            "      y;",
            "  int z = x[0] ? __LINE__ : 2;",
            "}",
            "} }",
        ]
    )
    text = rewrite(source, "k.cu")
    assert text.count("\n") == source.count("\n") + 1
    lines, before = text.split("\n")[1:], source.split("\n")
    assert [lines[i] for i in (0, 1, 5, 6, 7)] == [before[i] for i in (0, 1, 5, 6, 7)]
    assert lines[2].startswith("  case 1: typedef int x_simt0_type [N], y_simt0_type; ")
    assert '"k.cu", 3' in lines[2]


def test_two_declarations_get_two_names() -> None:
    text = rewrite("void f() { __shared__ int x; { __shared__ int x; } }", "k.cu")
    assert {"x_simt0_object", "x_simt1_object"} <= set(re.findall(r"\w+_object", text))


def test_inside_of_a_macro() -> None:
    source = "#define TILE(name, n) \\\n  __shared__ float name \\\n    [n]\nvoid f() { TILE(t, 3); }\n"
    text = rewrite(source, "k.cu")
    assert text.count("\n") == source.count("\n") + 1
    assert "typedef float name_simt0_type [n]" in text
    assert all(line.endswith("\\") for line in text.split("\n")[1:3])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("\n__shared__ int x;", "k.cu:2: a __shared__ variable outside a function"),
        ("namespace a { extern __shared__ int x[]; }", "outside a function"),
        ("#define MINE __shared__\n", "a macro hides __shared__"),
        ("void f() {\n __shared__ int x = 3; }", "k.cu:2: a __shared__ variable with an initializer"),
        ("void f() { __shared__ int\n#if A\n x\n#endif\n; }", "a preprocessor line inside"),
    ],
)
def test_what_cannot_be_rewritten_is_an_error(source: str, says: str) -> None:
    with pytest.raises(CompileError, match=re.escape(says)):
        rewrite(source, "k.cu")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ('asm("ret;");', "`ret;`"),
        ('asm volatile("bar.sync %0;" :: "r"(1) : "memory");', "`bar.sync %0;`"),
        ('__asm__ __volatile__ (\n  "mov.u32 %0, 1;\\n\\t"\n  "ret;" : "=r"(x)\n);', "`mov.u32 %0, 1; ret;`"),
        ("asm volatile(INSTRUCTIONS);", "`...`"),
        ('asm("" MORE : "=r"(x));', "`...`"),
    ],
)
def test_assembly_becomes_an_error_on_its_line(statement: str, said: str) -> None:
    text = rewrite(f"void f() {{\n{statement}\n}}", "k.cu").split("\n")
    assert text[2].startswith('static_assert(false, "inline assembly, ' + said)
    assert len(text) == statement.count("\n") + 4
    assert text[-2].endswith(";")


def test_assembly_in_a_macro_keeps_its_lines() -> None:
    source = '#define STOP() \\\n  asm volatile( \\\n    "exit;")\nvoid f() { STOP(); }\n'
    text = rewrite(source, "k.cu").split("\n")
    assert text[2].startswith("  static_assert(false, ")
    assert text[2].endswith("\\")
    assert text[4] == "void f() { STOP(); }"


@pytest.mark.parametrize(
    "text",
    [
        'void f() { asm volatile("" : "+r"(x) :: "memory"); }',
        'void f() { asm(""); }',
        "#define ASM_BEGIN\n#define asm_linkage static\nint asm_count; // asm(x)\n",
        "#include <cuda_fp16.h>\n#include <cooperative_groups/reduce.h>\n#include <cmath>\n",
        '#include "cuda/of_ones_own.h"\n',
    ],
)
def test_neither_assembly_nor_a_header_that_is_missing(text: str) -> None:
    assert rewrite(text, "k.cu") == '#line 1 "k.cu"\n' + text


def test_a_missing_header_of_cuda_is_left_out_on_its_line() -> None:
    text = rewrite("int a;\n#  include < cuda/barrier >  // for later\nint b;\n", "k.cu").split("\n")
    assert text[2] == '#pragma GCC warning "<cuda/barrier> is not here for the CPU and was left out"'
    assert text[3] == "int b;"
