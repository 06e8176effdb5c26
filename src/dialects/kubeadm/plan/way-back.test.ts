/** Proves which hosts go back to an older patch, and what is refused. */
import { describe, expect, test } from 'vitest';
import {
  facts,
  fresh,
  manifest,
  NAMES,
  NEW,
  node,
  OLD,
  REQUEST,
} from '../../../../test/support/kubeadm/upgrade-surveys.ts';
import type { ConfigMap } from '../../../kube/resources.ts';
import { type Before, beforeOf, newPlan, type Request } from './plan-object.ts';
import { assessHosts, type Survey } from './preflight.ts';

const RAN: Before = {
  to: NEW,
  hosts: Object.fromEntries(NAMES.map((name) => [name, { version: OLD }])),
};

function planWith(
  before: Before | undefined,
  phase = 'done',
  request: Request = REQUEST,
): ConfigMap {
  const plan = newPlan(request, 'start', undefined, before);
  const rollout = { phase, blocked: false, stages: [] };
  return { ...plan, data: { ...plan.data, rollout: JSON.stringify(rollout) } };
}

/** The cluster after the upgrade, with a manifest that names the version before the upgrade. */
const upgraded: Survey = {
  ...fresh,
  manifest: { ...manifest, version: OLD },
  hosts: NAMES.map((name) => facts(name, NEW)),
  nodes: NAMES.map((name) => node(name, NEW)),
  clusterVersion: NEW,
  plan: planWith(RAN),
  goesBack: true,
};

const at = (versions: Readonly<Record<string, string>>): Partial<Survey> => ({
  hosts: NAMES.map((name) => facts(name, versions[name] ?? NEW)),
  nodes: NAMES.map((name) => node(name, versions[name] ?? NEW)),
});
const ran = (hosts: Before['hosts']): Partial<Survey> => ({
  plan: planWith({ to: NEW, hosts: { ...RAN.hosts, ...hosts } }),
});
const refusals = (survey: Survey): string[] =>
  assessHosts(survey)
    .findings.filter(({ severity }) => severity !== 'warn')
    .map(({ rule, message }) => `${rule} ${message}`);

describe('who goes back', () => {
  const back = { ...REQUEST, version: OLD, back: true };
  test.each<[string, Partial<Survey>, Partial<Request>]>([
    ['every host', {}, {}],
    ['the hosts that have moved, if the upgrade stopped halfway', at({ w1: OLD }), { workers: [] }],
    [
      'the rest, if the way back stopped after the leader',
      { ...at({ w1: OLD, cp1: OLD }), clusterVersion: OLD },
      { workers: [], leader: [] },
    ],
    [
      'the leader once more, if kubeadm has not recorded the version',
      at({ w1: OLD, cp1: OLD, cp2: OLD }),
      { workers: [], followers: [] },
    ],
    [
      'a worker alone, if it ran another patch than the control plane',
      ran({ cp1: { version: 'v1.36.1' }, cp2: { version: 'v1.36.1' } }),
      { leader: [], followers: [] },
    ],
  ])('%s', (_name, given, expected) => {
    const survey = { ...upgraded, ...given };
    expect(assessHosts(survey).request).toEqual({ ...back, ...expected });
    expect(refusals(survey)).toEqual([]);
  });

  test('a host that stays is told with its reason', () => {
    const survey = {
      ...upgraded,
      ...ran({ cp1: { version: 'v1.36.1' }, cp2: { version: 'v1.36.1' } }),
    };
    const why = 'ran v1.36.1 before, not v1.36.2';
    expect(assessHosts(survey).stays).toEqual(
      new Map([
        ['cp1', why],
        ['cp2', why],
      ]),
    );
  });

  test('a way back that has begun goes on without the option', () => {
    const plan = planWith(RAN, 'running', back as Request);
    const { resumes, request } = assessHosts({
      ...upgraded,
      ...at({ w1: OLD }),
      plan,
      goesBack: false,
    });
    expect({ resumes, request }).toEqual({ resumes: true, request: back });
  });
});

describe('what is refused', () => {
  test.each<[string, Partial<Survey>, string[]]>([
    [
      'without the option',
      { goesBack: false },
      ['R12 API servers are at v1.36.3, and v1.36.2 is older'],
    ],
    [
      'an older minor version, whatever is recorded',
      { manifest: { ...manifest, version: 'v1.35.9' } },
      [
        'R12 API servers are at v1.36.3 and cannot go back to v1.35.9: Kubernetes does not support a return to an older minor version, because etcd may hold objects that this version cannot read',
      ],
    ],
    [
      'no record',
      { plan: undefined },
      [
        'R12 ConfigMap kube-system/refit-kubeadm does not record what the hosts ran before the last upgrade',
      ],
    ],
    [
      'a version that no host ran',
      { manifest: { ...manifest, version: 'v1.36.1' } },
      [
        'R12 no host can go back to v1.36.1: cp1 ran v1.36.2 before, not v1.36.1; cp2 ran v1.36.2 before, not v1.36.1; w1 ran v1.36.2 before, not v1.36.1',
      ],
    ],
    [
      'a part of the control plane',
      ran({ cp2: { version: 'v1.36.1' } }),
      [
        'R12 all control-plane hosts must go back together, but cp2 ran v1.36.1 before, not v1.36.2',
        'R3 kubelet of cp2 at v1.36.3 would be newer than the API servers at v1.36.2',
      ],
    ],
    [
      'a worker that would stay newer than the API servers',
      ran({ w1: { version: 'v1.36.1' } }),
      ['R3 kubelet of w1 at v1.36.3 would be newer than the API servers at v1.36.2'],
    ],
    [
      'a Node that was created again under its name',
      ran({ w1: { uid: 'another', version: OLD } }),
      ['R3 kubelet of w1 at v1.36.3 would be newer than the API servers at v1.36.2'],
    ],
    [
      'a worker outside of the manifest that stays newer',
      { nodes: [...NAMES, 'w9'].map((name) => node(name, NEW)) },
      ['R3 kubelet of w9 at v1.36.3 would be newer than the API servers at v1.36.2'],
    ],
    [
      'a worker that somebody else has upgraded since',
      at({ w1: 'v1.36.4' }),
      ['R3 kubelet of w1 at v1.36.4 would be newer than the API servers at v1.36.2'],
    ],
    [
      'the option amid the upgrade to that version',
      {
        manifest,
        plan: planWith(RAN, 'running'),
        ...at({ cp1: NEW, cp2: OLD, w1: OLD }),
        clusterVersion: OLD,
      },
      ['F4 an upgrade to v1.36.3 is in progress; leave --back out to continue it'],
    ],
  ])('%s', (_name, given, expected) => {
    expect(refusals({ ...upgraded, ...given })).toEqual(expected);
  });
});

describe('the record', () => {
  test('has what each host runs before the upgrade', () => {
    expect(assessHosts(fresh).before).toEqual(RAN);
  });

  test('an upgrade that runs again keeps what hosts ran before it first began', () => {
    const survey = { ...fresh, ...at({ w1: OLD, cp2: OLD }), plan: planWith(RAN, 'failed') };
    expect(assessHosts(survey).before).toEqual(RAN);
  });

  test('the way back keeps it, and the next upgrade begins another one', () => {
    expect(assessHosts(upgraded).before).toEqual(RAN);
    const next = { ...upgraded, goesBack: false, manifest: { ...manifest, version: 'v1.36.4' } };
    expect(assessHosts(next).before).toEqual({
      to: 'v1.36.4',
      hosts: Object.fromEntries(NAMES.map((name) => [name, { version: NEW }])),
    });
  });

  test('a host with several versions has none', () => {
    const hosts = [facts('cp1', OLD, { kubelet: NEW }), facts('cp2'), facts('w1')];
    const { cp1: _, ...others } = RAN.hosts;
    expect(assessHosts({ ...fresh, hosts }).before).toEqual({ to: NEW, hosts: others });
  });

  test.each(['', '{', '{}', '{"to":1,"hosts":{}}', '{"to":"v1.36.3","hosts":{"w1":{}}}'])(
    'what nobody can read is no record: %j',
    (before) => {
      expect(beforeOf({ metadata: { name: 'refit-kubeadm' }, data: { before } })).toBeUndefined();
    },
  );
});
