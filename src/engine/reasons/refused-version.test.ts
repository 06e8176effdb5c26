/** Tests that the versions that a version rule refuses are read again from each of its sentences, and no other version. */
import { describe, expect, test } from 'vitest';
import { kubeletsLeftBehind } from '../../versions/kubelet-lag.ts';
import { judgePlan, kubeletsLeftAhead, type VersionProblem } from '../../versions/plan-rules.ts';
import { because, type Reason } from '../model/reasons.ts';
import { combined } from './combined.ts';
import { readRefusedVersions, refusedVersions, workerStaysNewer } from './refused-version.ts';

/** Names that a Node may have and that are also words of these sentences. */
const NAMES = ['w1', 'w1.example.com', 'node', 'has', 'to', 'v1.36.3'];

/** Returns what the rules say about one worker that goes from one version to another. */
function stepOf(name: string, current: string, version: string): readonly VersionProblem[] {
  const stage = { role: 'worker', version, forced: false, targets: [{ name, current }] } as const;
  return judgePlan([stage], [], new Set()).problems;
}

/** Returns all that the rules can say about a node. */
function allAbout(name: string): readonly VersionProblem[] {
  const server = { name, version: 'v1.36.3+build.0' };
  const back = { role: 'controller', version: 'v1.35.1', forced: false } as const;
  const worker = { role: 'worker', version: 'v1.36.3', forced: false } as const;
  const kubelet = { name, version: 'v1.36.3' };
  const controllers = { ...back, targets: [{ name, current: 'v1.36.3' }] };
  const workers = { ...worker, targets: [{ name, current: 'v1.36.3' }] };
  const lag = { kubelets: [{ name, version: 'v1.34.0' }], mostBehind: 1 };
  const ahead = kubeletsLeftAhead({ name, version: 'v1.35.1' }, [kubelet], new Set());
  return [
    ...stepOf(name, 'v1.34.1+build.0', 'v1.36.3+build.0'),
    ...stepOf(name, 'v1.36.3', 'v2.0.0'),
    ...stepOf(name, 'v1.36.3', 'v1.36.1-rc.1'),
    ...judgePlan(
      [{ ...worker, targets: [{ name, current: 'v1.35.1' }] }],
      [{ name, version: 'v1.35.9' }],
      new Set(),
    ).problems,
    ...judgePlan([controllers, workers], [server], new Set(['Downgrade'])).problems,
    ...(ahead === undefined ? [] : [ahead]),
    ...kubeletsLeftBehind(
      [{ ...back, version: 'v1.36.3', targets: [{ name, current: 'v1.35.1' }] }],
      [{ name, version: 'v1.35.1' }],
      lag,
    ),
    ...kubeletsLeftBehind(
      [{ ...worker, version: 'v1.34.1', targets: [{ name, current: 'v1.36.3' }] }],
      [server],
      { ...lag, kubelets: [] },
    ),
  ];
}

describe('each sentence of a version rule gives the refused version back,', () => {
  test.each(NAMES)('also if the node has the name %s', (name) => {
    const said: readonly Reason[] = [
      ...allAbout(name),
      workerStaysNewer(name, { installed: 'v1.36.3', version: 'v1.35.1' }),
    ];
    const codes = new Set(said.map(({ code }) => code));
    expect(codes).toEqual(new Set(['SkippedMinor', 'Downgrade', 'KubeletAhead', 'KubeletBehind']));
    expect(said.map(({ message }) => readRefusedVersions(message))).toEqual(
      said.map(refusedVersions),
    );
  });
});

test('a list of sentences gives the refused versions of all sentences back, each once', () => {
  const said = allAbout('w1');
  const listed = combined(said, said.map(({ message }) => message).join('; '));
  const versions = new Set(said.flatMap(({ details }) => details.versions));
  expect(listed && refusedVersions(listed)).toEqual([...versions]);
  expect(listed && readRefusedVersions(listed.message)).toEqual([...versions]);
});

test.each<[string, readonly string[]]>([
  ['w1 would skip v1.37 on its way to v1.38.0', ['v1.38.0']],
  ['w1 cannot go from v1.34.1+build.0 to v1.36.3+build.0.', ['v1.34.1+build.0', 'v1.36.3+build.0']],
  ['to v1.36.3-build1, which', ['v1.36.3-build1']],
  ['to v1.36.3-rc.1: no', ['v1.36.3-rc.1']],
  ['', []],
])('in the sentence %j of another release, every version counts as refused', (sentence, found) => {
  expect(readRefusedVersions(sentence)).toEqual(found);
});

test('a reason of another kind refuses no version', () => {
  expect(refusedVersions(because('TargetFailed', 'w1: v1.36.3 does not start'))).toBeUndefined();
});
