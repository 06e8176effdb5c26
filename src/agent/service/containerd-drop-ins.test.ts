/** Tests which configuration of containerd the agent announces. The rules are those of `k0s sysinfo` of 1.36. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { oldContainerdDropIns } from './containerd-drop-ins.ts';

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'refit-containerd-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const V2 = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\n';
const V3 = 'version = 3\n[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]\n';

test.each([
  ['version 2', V2, true],
  ['no version, and the plugin of containerd 1', V2.replace(/.*\n/, ''), true],
  ['version 2 without a plugin', '  version=2 # old\n', true],
  ['a version that is a text', 'version = "3"\n', true],
  ['version 3', V3, false],
  ['no version', V3.replace(/.*\n/, ''), false],
  ['version 3, and the old plugin in a comment', `${V3}# ${V2.split('\n')[1] ?? ''}\n`, false],
  ['a table with its own version', `${V3}[proxy_plugins.x]\nversion = 2\n`, false],
  ['nothing', '', false],
])('a file with %s is named: %j %s', (_title, text, isNamed) => {
  expect(oldContainerdDropIns(folderWith({ 'x.toml': text }))).toEqual(isNamed ? ['x.toml'] : []);
});

test('only regular files whose names end with .toml are read, and they are named in order', () => {
  const folder = folderWith({ 'b.toml': V2, 'a.toml': V2, 'c.toml.bak': V2, 'd.txt': V2 });
  mkdirSync(join(folder, 'e.toml'));
  expect(oldContainerdDropIns(folder)).toEqual(['a.toml', 'b.toml']);
});

test('a host without the folder has no such files', () => {
  expect(oldContainerdDropIns('/nonexistent/containerd.d')).toEqual([]);
});
