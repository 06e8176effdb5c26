/** Tests which files of arguments are read, and that everything else in them stays unchanged. */
import { expect, test } from 'vitest';
import { withArguments } from './kubelet.ts';

const V4 = [{ name: 'kubelet:v', content: '4', mode: 0 }];

function changed(text: string): string {
  const after = withArguments(
    { content: Buffer.from(text).toString('base64'), mode: 0o640, gid: 7 },
    V4,
  );
  expect(after).toMatchObject({ mode: 0o640, gid: 7 });
  return Buffer.from(after.content, 'base64').toString();
}

test.each([
  ['a value', '"--v=2 --node-ip=192.0.2.1"', '"--v=4 --node-ip=192.0.2.1"'],
  ['an argument without a value', '"--v"', '"--v=4"'],
  ['an argument that is there twice', '"--v=1 --v=2"', '"--v=4"'],
  ['other arguments only', '"--node-ip=192.0.2.1"', '"--node-ip=192.0.2.1 --v=4"'],
  ['no argument at all', '""', '"--v=4"'],
  ['another argument with the same beginning', '"--vmodule=a=1"', '"--vmodule=a=1 --v=4"'],
])('the arguments of the kubelet are changed where the file has %s', (_what, before, after) => {
  const file = (line: string): string =>
    `# by kubeadm\nKUBELET_KUBEADM_ARGS=${line}\nOTHER="--v=1"\n`;
  expect(changed(file(before))).toBe(file(after));
});

test.each([
  '',
  'KUBELET_KUBEADM_ARGS=--v=2',
  'KUBELET_KUBEADM_ARGS="--a=\\"b c\\""',
  'KUBELET_KUBEADM_ARGS="-v 2"',
])('a file of arguments in another form is not read: %s', (text) => {
  expect(() => changed(text)).toThrow('kubeadm-flags.env has no line');
});

test('a long line that fits nearly is read at once', () => {
  for (const word of ['--a ', '--a'])
    expect(() => changed(`KUBELET_KUBEADM_ARGS="${word.repeat(20_000)}'"`)).toThrow('has no line');
});
