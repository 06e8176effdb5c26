/** Proves which lists of binaries can be read. */
import { expect, test } from 'vitest';
import { hashesIn } from './fetch-binaries.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);

test('a list as sha256sum prints it, of text or binary files', () => {
  expect(hashesIn(`${A}  kubeadm\n${B} *kubelet\n`)).toEqual({ kubeadm: A, kubelet: B });
});

test.each([
  ['a hash alone', A],
  ['a hash that is too short', `${A.slice(1)}  kubeadm`],
  ['a path', `${A}  ../kubeadm`],
  ['another name', `${A}  etcd`],
  ['a name of every object', `${A}  constructor`],
  ['a page', '<html>'],
])('%s: refused, with the line', (_name, line) => {
  expect(() => hashesIn(`${B}  kubelet\n${line}\n`)).toThrow(
    `the line ${JSON.stringify(line)}: expected the output`,
  );
});

test('a binary that is listed twice', () => {
  expect(() => hashesIn(`${A}  kubeadm\n${B}  kubeadm\n`)).toThrow('twice');
});
