/** Tests how old kubelets may be beside the API servers that a plan upgrades. */
import { expect, test } from 'vitest';
import { kubeletsLeftBehind } from './kubelet-lag.ts';
import type { VersionStage } from './plan-rules.ts';

type Versions = Readonly<Record<string, string | undefined>>;

const V34 = 'v1.34.1+k0s';
const V35 = 'v1.35.1+k0s.0';
const V36 = 'v1.36.3+k0s.0';

function stage(
  role: VersionStage['role'],
  version: string,
  targets: Versions,
  forced = false,
): VersionStage {
  const list = Object.entries(targets).map(([name, current]) => ({ name, current }));
  return { role, version, forced, targets: list };
}

function reported(versions: Versions): { name: string; version: string | undefined }[] {
  return Object.entries(versions).map(([name, version]) => ({ name, version }));
}

test.each<[string, readonly VersionStage[], Versions, Versions, readonly string[]]>([
  [
    'workers that follow by one minor version',
    [stage('controller', V36, { c1: V35 }), stage('worker', V36, { w1: 'v1.35.1+k0s' })],
    { c1: V35 },
    { w1: 'v1.35.1+k0s' },
    [],
  ],
  [
    'a worker that the plan does not list, two minor versions behind',
    [stage('controller', V36, { c1: V35, c2: V35 })],
    { c1: V35, c2: V35 },
    { w1: V34, w2: V34, w3: 'v1.35.1+k0s' },
    [`w1, w2 would still have a kubelet of ${V34} when the API server of c1, c2 has ${V36}`],
  ],
  [
    'a worker that an earlier command takes forward',
    [stage('worker', V35, { w1: V34 }), stage('controller', V36, { c1: V35 })],
    { c1: V35 },
    { w1: V34 },
    [],
  ],
  [
    'a worker that only a later command takes forward',
    [stage('controller', V36, { c1: V35 }), stage('worker', V35, { w1: V34 })],
    { c1: V35 },
    { w1: V34 },
    [`w1 would still have a kubelet of ${V34}`],
  ],
  [
    'a listed worker whose Node is not known',
    [stage('controller', V36, { c1: V35 }), stage('worker', V36, { w1: V34 })],
    { c1: V35 },
    {},
    [`w1 would still have a kubelet of ${V34}`],
  ],
  [
    'a newer patch of controllers whose workers are too old already',
    [stage('controller', 'v1.36.4+k0s.0', { c1: V36 })],
    { c1: V36 },
    { w1: V34 },
    [],
  ],
  [
    'a step of workers that are too old already',
    [stage('worker', 'v1.34.9+k0s.0', { w1: V34 })],
    { c1: V36 },
    { w1: V34 },
    [],
  ],
  [
    'a worker that goes down to a version that is too old',
    [stage('worker', 'v1.34.1+k0s.0', { w1: V36 })],
    { c1: V36 },
    { w1: 'v1.36.3+k0s' },
    [`w1 would go down to a kubelet of v1.34.1+k0s.0, too old for the API server of c1 (${V36})`],
  ],
  [
    'a worker that goes back by one minor version',
    [stage('worker', V35, { w1: V36 })],
    { c1: V36 },
    { w1: 'v1.36.3+k0s' },
    [],
  ],
  [
    'a kubelet of another major version',
    [stage('controller', 'v2.0.0', { c1: V36 })],
    { c1: V36 },
    { w1: 'v1.36.3+k0s' },
    ['w1 would still have a kubelet of v1.36.3+k0s'],
  ],
  [
    'controllers with forceupdate',
    [stage('controller', V36, { c1: V35 }, true)],
    { c1: V35 },
    { w1: V34 },
    [],
  ],
  [
    'versions that cannot be compared',
    [
      stage('controller', 'latest', { c1: V35 }),
      stage('controller', V36, { c2: undefined, c3: V35 }),
      stage('worker', 'latest', { w2: V36 }),
    ],
    { c1: V35, c2: undefined, c3: V35 },
    { w1: 'nightly', w2: undefined },
    [],
  ],
])('the rule KubeletBehind judges %s', (_title, stages, servers, kubelets, sentences) => {
  const lag = { kubelets: reported(kubelets), mostBehind: 1 };
  const found = kubeletsLeftBehind(stages, reported(servers), lag);
  expect(found).toEqual(
    sentences.map((sentence) => ({
      code: 'KubeletBehind',
      message: expect.stringContaining(sentence) as string,
      // In each case with a problem, the first stage asks for the version that is refused.
      details: { versions: [stages[0]?.version] },
    })),
  );
  for (const { message } of found) {
    expect(message).toContain('at most 1 minor version older');
    expect(message).toContain('versions.allow: [KubeletBehind] of an UpgradePolicy allows it');
  }
});
