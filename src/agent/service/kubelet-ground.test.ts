/** Tests what a host that the new kubelet would refuse is told before it is drained. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SignalCommand } from '../../signal/annotations.ts';
import { cgroupV1Of, groundVeto } from './kubelet-ground.ts';

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
  'the host has cgroup v1, which the kubelet of v1.35.0+k0s.0 refuses: boot it with cgroup v2, or set failCgroupV1: false in its worker profile and restart k0s';

test('a node of k0s on cgroup v1 is refused from v1.35 on, before anything is done', () => {
  runKubelet(`--config=${join(root, 'config.yaml')}`);
  writeFileSync(join(root, 'config.yaml'), 'kind: KubeletConfiguration\n');
  expect(said('v1.35.0+k0s.0')).toBe(REFUSED);
  expect(said('v1.34.9+k0s.0')).toBeUndefined();
  expect(said('v1.35.0+k0s.0', false)).toBeUndefined();
});

test('a controller without a kubelet is not', () => {
  expect(said('v1.35.0+k0s.0')).toBeUndefined();
});

test.each(['failCgroupV1: false\n', '{"kind": "KubeletConfiguration", "failCgroupV1": false}'])(
  'nor a node whose worker profile allows it: %s',
  (text) => {
    runKubelet(`--config=${join(root, 'config.yaml')}`);
    writeFileSync(join(root, 'config.yaml'), text);
    expect(said('v1.36.3+k0s.0')).toBeUndefined();
  },
);

test('nor one with the flag of the kubelet', () => {
  runKubelet('--fail-cgroupv1=false');
  expect(said('v1.36.3+k0s.0')).toBeUndefined();
});

test('what the agent announces: nothing on cgroup v2 or without a kubelet, else what the kubelet allows', () => {
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
