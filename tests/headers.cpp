// The program that compiles the headers which all tests share.
int main() {}
