/** Owns the table of how the versions that k0s tells meet the rules about versions. */
import { expect, test } from 'vitest';
import { buildStage } from '../../../test/builders/stages.ts';
import { buildWorld } from '../../../test/builders/worlds.ts';
import type { Role } from '../../engine/model.ts';
import { judgeVersions } from '../../engine/policy/version-rules.ts';
import type { KubeObject, Node } from '../../kube/types.ts';
import { type ControlNode, MODE_ANNOTATION } from '../../signal/names.ts';
import { apiServerVersions, versionStage } from './versions.ts';

const controller = (name: string, k0sVersion: string, mode = 'controller'): ControlNode => ({
  metadata: { name, annotations: { [MODE_ANNOTATION]: mode } },
  status: { k0sVersion },
});
const worker = (name: string, kubeletVersion: string): Node => ({
  metadata: { name },
  status: { nodeInfo: { kubeletVersion } },
});

/** The codes of the rules that one stage breaks. */
function broken(
  controllers: readonly KubeObject[],
  workers: readonly KubeObject[],
  role: Role,
  version: string,
): string[] {
  const world = buildWorld(controllers, workers);
  const names = (role === 'controller' ? controllers : workers).map(({ metadata }) => metadata.name);
  const stage = buildStage(role, names, { version });
  const { problems, unjudged } = judgeVersions([versionStage(stage, world)], apiServerVersions(world), new Set());
  expect(unjudged).toEqual([]);
  return problems.map(({ code }) => code);
}

const SERVER = controller('c1', 'v1.36.3+k0s.2');

test.each<[string, ControlNode[], Node[], Role, string, string[]]>([
  ['a kubelet tells no number of its build', [SERVER], [worker('w1', 'v1.36.3+k0s')], 'worker', 'v1.36.3+k0s.0', []],
  ['an older patch', [SERVER], [worker('w1', 'v1.36.3+k0s')], 'worker', 'v1.36.2+k0s.5', ['Downgrade']],
  ['an older build of a controller', [SERVER], [], 'controller', 'v1.36.3+k0s.0', ['Downgrade']],
  ['a newer build of a controller', [SERVER], [], 'controller', 'v1.36.3+k0s.10', []],
  [
    'a minor version is skipped',
    [controller('c1', 'v1.34.9+k0s.0')],
    [],
    'controller',
    'v1.36.3+k0s.2',
    ['SkippedMinor'],
  ],
  [
    'a worker before its controllers',
    [SERVER],
    [worker('w1', 'v1.36.3+k0s')],
    'worker',
    'v1.37.0+k0s.0',
    ['KubeletAhead'],
  ],
  [
    'controllers that are workers too',
    [controller('c1', 'v1.36.3+k0s.2', 'controller+worker')],
    [],
    'controller',
    'v1.37.0+k0s.0',
    [],
  ],
])('%s', (_, controllers, workers, role, version, rules) => {
  expect(broken(controllers, workers, role, version)).toEqual(rules);
});

test('a controller that is a worker too has a kubelet, which may not be ahead of the other controllers', () => {
  const world = buildWorld(
    [controller('c1', 'v1.36.3+k0s.2', 'controller+worker'), controller('c2', 'v1.36.3+k0s.2')],
    [],
  );
  const stage = versionStage(buildStage('controller', ['c1'], { version: 'v1.37.0+k0s.0' }), world);
  const { problems } = judgeVersions([stage], apiServerVersions(world), new Set());
  expect(problems.map(({ message }) => message)).toEqual([
    'c1 would have a kubelet of v1.37.0+k0s.0, newer than the API server of c2 (v1.36.3+k0s.2) (rule KubeletAhead)',
  ]);
});
