/** Tests the message for a host that the new kubelet would refuse. The message comes before the drain. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SignalCommand } from '../../signal/annotations.ts';
import { cgroupV1Of, type Ground, groundVeto } from './kubelet-ground.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'refit-ground-'));
  mkdirSync(join(root, 'proc/12'), { recursive: true });
  mkdirSync(join(root, 'proc/self'));
});
afterEach(() => rmSync(root, { recursive: true }));

const to = (version: string): SignalCommand =>
  ({ kind: 'k0supdate', version, url: 'https://example.com/k0s' }) as SignalCommand;

function runKubelet(...words: readonly string[]): void {
  const line = [join(root, 'k0s/bin/kubelet'), ...words].join('\0');
  writeFileSync(join(root, 'proc/12/cmdline'), `${line}\0`);
}

const said = (version: string, isOnCgroupV1 = true): string | undefined =>
  groundVeto(to(version), {
    dataDirectory: join(root, 'k0s'),
    proc: join(root, 'proc'),
    whyForeign: () => undefined,
    isOnCgroupV1: () => isOnCgroupV1,
  });

const REFUSED =
  'the host has cgroup v1, which the kubelet of v1.35.0+k0s.0 refuses: boot it with cgroup v2, or set failCgroupV1: false in its worker profile and restart k0s; or start the agent with --allow-cgroup-v1, which skips this check';

test('a node of k0s on cgroup v1 is refused from v1.35 on, before anything is done', () => {
  runKubelet(`--config=${join(root, 'config.yaml')}`);
  writeFileSync(join(root, 'config.yaml'), 'kind: KubeletConfiguration\n');
  expect(said('v1.35.0+k0s.0')).toBe(REFUSED);
  expect(said('v1.34.9+k0s.0')).toBeUndefined();
  expect(said('v1.35.0+k0s.0', false)).toBeUndefined();
});

test('a controller without a kubelet is not refused on cgroup v1', () => {
  expect(said('v1.35.0+k0s.0')).toBeUndefined();
});

test.each(['failCgroupV1: false\n', '{"kind": "KubeletConfiguration", "failCgroupV1": false}'])(
  'a node whose worker profile allows cgroup v1 is not refused: %s',
  (text) => {
    runKubelet(`--config=${join(root, 'config.yaml')}`);
    writeFileSync(join(root, 'config.yaml'), text);
    expect(said('v1.36.3+k0s.0')).toBeUndefined();
  },
);

test('a node whose kubelet has the flag that allows cgroup v1 is not refused', () => {
  runKubelet('--fail-cgroupv1=false');
  expect(said('v1.36.3+k0s.0')).toBeUndefined();
});

test('the agent announces nothing on cgroup v2 or without a kubelet, and else whether the kubelet allows cgroup v1', () => {
  const announced = (isOnCgroupV1: boolean): string | undefined =>
    cgroupV1Of({
      dataDirectory: join(root, 'k0s'),
      proc: join(root, 'proc'),
      whyForeign: () => undefined,
      isOnCgroupV1: () => isOnCgroupV1,
    });
  expect(announced(true)).toBeUndefined();
  runKubelet('--fail-cgroupv1=true');
  expect(announced(true)).toBe('refused');
  expect(announced(false)).toBeUndefined();
  runKubelet('--fail-cgroupv1=false');
  expect(announced(true)).toBe('allowed');
});

test('what another user starts as the kubelet of k0s decides nothing', () => {
  runKubelet('--fail-cgroupv1=true');
  const found = (foreign?: string): string | undefined =>
    cgroupV1Of({
      dataDirectory: join(root, 'k0s'),
      proc: join(root, 'proc'),
      whyForeign: () => foreign,
      isOnCgroupV1: () => true,
    });
  expect(found()).toBe('refused');
  expect(found('belongs to user 65534, not to root')).toBeUndefined();
});

const announced = (ground: Partial<Ground> = {}): string | undefined =>
  cgroupV1Of({
    dataDirectory: join(root, 'k0s'),
    proc: join(root, 'proc'),
    isOnCgroupV1: () => true,
    whyForeign: () => undefined,
    ...ground,
  });

function write(name: string, text: string): string {
  mkdirSync(join(root, 'drop-ins'), { recursive: true });
  writeFileSync(join(root, name), text);
  return join(root, name);
}

test('of several configurations of the kubelet the last one counts: that of the last --config, then each of --config-dir', () => {
  const first = write('first.yaml', 'failCgroupV1: false\n');
  const last = write('last.yaml', 'kind: KubeletConfiguration\n');
  runKubelet(`--config=${first}`, '--config', last);
  expect(announced()).toBe('refused');
  const folder = ['--config-dir', join(root, 'drop-ins')];
  write('drop-ins/10-a.conf', 'failCgroupV1: false\n');
  write('drop-ins/20-a.txt', 'failCgroupV1: true\n');
  runKubelet('--config', last, ...folder);
  expect(announced()).toBe('allowed');
  write('drop-ins/30-b.conf', '"failCgroupV1": true\n');
  expect(announced()).toBe('refused');
  runKubelet('--config', last, ...folder, '--fail-cgroupv1=0');
  expect(announced()).toBe('allowed');
});

test('nothing is known of a configuration of the kubelet that cannot be read', () => {
  runKubelet(`--config=${join(root, 'missing.yaml')}`);
  expect(announced()).toBeUndefined();
  expect(said('v1.35.0+k0s.0')).toBeUndefined();
});

test('a kubelet that runs here, and would refuse, proves that it is allowed', () => {
  runKubelet('--fail-cgroupv1=true');
  const old = (): number => 60_000;
  expect(announced({ running: 'v1.35.0+k0s.0', ageOf: old })).toBe('allowed');
  expect(announced({ running: 'v1.35.0+k0s.0', ageOf: () => 1_000 })).toBe('refused');
  expect(announced({ running: 'v1.34.0+k0s.0', ageOf: old })).toBe('refused');
});

test('the owner of a host may allow it, which says nothing of a host without a kubelet', () => {
  expect(announced({ allowed: true })).toBeUndefined();
  runKubelet('--fail-cgroupv1=true');
  expect(announced({ allowed: true })).toBe('allowed');
});
