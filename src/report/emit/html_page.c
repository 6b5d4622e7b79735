/* The HTML page that emit_html.c puts data into, part of the program so that a kprof that was copied alone has it. */
__asm__(".pushsection .rodata\n"
        ".global kprof_html_page, kprof_html_page_end\n"
        ".hidden kprof_html_page, kprof_html_page_end\n"
        "kprof_html_page: .incbin \"" KPROF_HTML_PAGE "\"\n"
        "kprof_html_page_end: .byte 0\n"
        ".popsection\n");
