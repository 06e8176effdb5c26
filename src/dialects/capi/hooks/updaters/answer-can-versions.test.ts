/** Tests which versions are accepted. */
import { describe, expect, test } from 'vitest';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import { buildUpdaterSet } from '../../../../../test/support/builders/updater-sets.ts';
import { leftBy, presence, REFIT, Scene } from '../../../../../test/support/capi/can-update.ts';
import { buildTriple } from '../../../../../test/support/capi/triples.ts';
import { later } from '../../../../../test/support/clock/times.ts';
import type { Triple } from '../../../../api/capi/hooks.ts';
import { CONTROL_PLANE_LABEL, machines } from '../../../../api/capi/machine.ts';
import { updaterSets } from '../../../../api/refit/updater-set.ts';
import { annotated, nodes } from '../../../../kube/resources.ts';
import { encodePresence } from '../../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../../../signal/names.ts';

describe('a version that breaks a rule', () => {
  function sceneOf(kubelet: string, labels: Record<string, string> = {}): Scene {
    const scene = new Scene({}, [REFIT]);
    scene.api.remove(updaterSets, 'all');
    scene.api.put(machines, {
      metadata: { name: 'm1', namespace: 'default', labels },
      status: { nodeRef: { name: 'w1' } },
    });
    const node = buildNode('w1', { annotations: presence });
    scene.api.put(nodes, {
      ...node,
      status: { ...node.status, nodeInfo: { kubeletVersion: kubelet } },
    });
    return scene;
  }
  const change = (from: string, to: string, labels = {}): [Triple, Triple] => {
    const triple = (version: string): Triple => {
      const { machine, ...rest } = buildTriple({ machine: { version } });
      return {
        ...rest,
        machine: { ...machine, metadata: { name: 'm1', ...machine?.metadata, labels } },
      };
    };
    return [triple(from), triple(to)];
  };
  const AHEAD =
    'would have a kubelet of v1.37.0, newer than the API server of the cluster (v1.36.3)';

  test.each([
    [
      'skips a minor version',
      'v1.34.2',
      'v1.36.0',
      'w1 would go from v1.34.2 past 1.35 to v1.36.0',
      'SkippedMinor',
    ],
    ['is lower', 'v1.36.2', 'v1.36.1', 'w1 would go from v1.36.2 down to v1.36.1', 'Downgrade'],
    [
      'is lower, of k0s',
      'v1.36.2+k0s',
      'v1.36.1+k0s.0',
      'w1 would go from v1.36.2+k0s down to v1.36.1+k0s.0',
      'Downgrade',
    ],
    [
      'Refit refuses a kubelet version that is newer than the API server',
      'v1.36.2',
      'v1.37.0',
      `w1 ${AHEAD}`,
      'KubeletAhead',
    ],
  ])(
    '%s: it is not accepted, unless a setting lifts the rule',
    async (_name, from, to, why, rule) => {
      const scene = sceneOf(from);
      const refused = await scene.ask('CanUpdateMachine', ...change(from, to));
      const allows = 'to allow it, add the name of the rule to the setting allowedVersionRules';
      expect(refused.message).toBe(`covers nothing: ${why} (rule ${rule}); ${allows}`);
      expect(refused.machinePatch).toBeUndefined();
      const lifted = await scene.ask('CanUpdateMachine', ...change(from, to), {
        allowedVersionRules: `SkippedMinor, ${rule}`,
      });
      expect(leftBy(lifted, ...change(from, to))).toEqual([]);
    },
  );

  test.each([
    ['fake', 'its version fake is unreadable'],
    ['', 'its version is unknown'],
  ])('a kubelet that says %j: the claim says what was not checked', async (kubelet, why) => {
    const scene = sceneOf(kubelet);
    const answer = await scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    expect(answer.message).toBe(
      `covers machine.spec.version; not covered: nothing; the version rules were not checked: w1: ${why}`,
    );
    expect(answer.machinePatch).toBeDefined();
  });

  test('an UpdaterSet says it too', async () => {
    const scene = sceneOf('fake');
    scene.api.put(updaterSets, buildUpdaterSet('all', [REFIT], {}));
    const answer = await scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    expect(answer.message).toContain(
      '(refit); not covered: nothing; the version rules were not checked',
    );
  });

  test.each([
    ['refused', 'covers nothing: node w1: the host has cgroup v1, which the kubelet of v1.36.3'],
    ['allowed', 'covers machine.spec.version'],
  ] as const)('a host on cgroup v1, which its kubelet has %s', async (cgroupV1, wanted) => {
    const scene = sceneOf('v1.36.2');
    const told = encodePresence({ version: '1.0.0', since: later(0), cgroupV1 });
    scene.api.change(nodes, 'w1', (node) => annotated(node, { [AGENT_ANNOTATION]: told }));
    const answer = await scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    expect(answer.message).toContain(wanted);
  });

  test('the control plane goes ahead of its API servers', async () => {
    const labels = { [CONTROL_PLANE_LABEL]: '' };
    const change37 = change('v1.36.2', 'v1.37.0', labels);
    const answer = await sceneOf('v1.36.2', labels).ask('CanUpdateMachine', ...change37);
    expect(leftBy(answer, ...change37)).toEqual([]);
  });

  test('is not ruled out while the API server does not tell its own', async () => {
    const scene = sceneOf('v1.36.2');
    scene.api.version = '';
    const asked = scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    await expect(asked).rejects.toThrow(
      'the API server of the Nodes does not report its version at /version',
    );
  });

  test('Refit finds a skipped minor version by the kubelet version, not by the version of the Machine', async () => {
    const scene = sceneOf('v1.34.2');
    const { message } = await scene.ask('CanUpdateMachine', ...change('v1.35.0', 'v1.36.0'));
    expect(message).toContain('(rule SkippedMinor)');
  });
});
