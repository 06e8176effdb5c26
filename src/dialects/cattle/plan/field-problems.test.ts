/** Shows which fields of a Plan can never work, or have another meaning than users expect. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../../test/support/builders/cattle-plans.ts';
import { fieldFindings } from './field-problems.ts';
import { conditionsOf, resolveLatest } from './latest.ts';

const RIGHT =
  'it must consist of lower-case letters, digits, hyphens and dots, and begin and end with a letter or digit';

test.each<[object, string]>([
  [
    { serviceAccountName: 'My_Account' },
    `spec.serviceAccountName: "My_Account" is a name that no object can have; ${RIGHT}`,
  ],
  [
    { priorityClassName: 'High!' },
    `spec.priorityClassName: "High!" is a name that no object can have; ${RIGHT}`,
  ],
  [
    { secrets: [{ name: 'a_b', path: 'a' }] },
    `spec.secrets[0].name: "a_b" is a name that no object can have; ${RIGHT}`,
  ],
  [
    {
      secrets: [
        { name: 'a', path: 'a' },
        { name: 'a.b', path: 'b' },
      ],
    },
    'spec.secrets[1].name: "a.b" cannot be mounted, because the Job names a volume after it; use a Secret without a dot in its name',
  ],
  [
    {
      secrets: [
        { name: 'a', path: '' },
        { name: 'b', path: '/run/system-upgrade/secrets/a' },
      ],
    },
    'spec.secrets[1].path: "/run/system-upgrade/secrets/a" is also the path of spec.secrets[0]; give each Secret its own path',
  ],
  ...['', ' ', 'A B', 'docker.io/Rancher/k3s', 'rancher/k3s:', 'https://ghcr.io/a'].map(
    (image): [object, string] => [
      { upgrade: { image } },
      `spec.upgrade.image: "${image}" is not the name of an image; use for example rancher/k3s-upgrade`,
    ],
  ),
  [
    { prepare: { image: '' } },
    'spec.prepare.image: "" is not the name of an image; use for example rancher/k3s-upgrade',
  ],
  [
    { tolerations: [{ key: 'a b', operator: 'Exists' }] },
    'spec.tolerations[0].key: is "a b", expected the key of a taint such as node-role.kubernetes.io/control-plane',
  ],
  [
    { tolerations: [{ key: 'a', operator: 'Exist' }] },
    'spec.tolerations[0].operator: is "Exist", expected Exists or Equal',
  ],
  [
    { tolerations: [{ operator: 'exists' }] },
    'spec.tolerations[0].operator: is "exists", expected Exists or Equal',
  ],
  [
    { tolerations: [{ operator: 'Exists', effect: 'NoRun' }] },
    'spec.tolerations[0].effect: is "NoRun", expected NoSchedule, PreferNoSchedule or NoExecute',
  ],
  [
    { tolerations: [{}] },
    'spec.tolerations[0].operator: is missing, expected Exists, because the toleration has no key',
  ],
  [
    { tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] },
    'spec.tolerations[0].value: is "b", but operator Exists allows no value; remove it, or use Equal',
  ],
  [
    { tolerations: [{ key: 'a', tolerationSeconds: 3 }] },
    'spec.tolerations[0].effect: is missing, expected NoExecute, because tolerationSeconds is set',
  ],
  [
    { drain: { timeout: '90' } },
    'spec.drain.timeout: "90" is not a duration; use a duration such as 90s or 1h30m',
  ],
  [
    { drain: { timeout: true } },
    'spec.drain.timeout: true is not a duration; use a duration such as 90s or 1h30m',
  ],
  [
    { drain: { timeout: '99999999h' } },
    'spec.drain.timeout: "99999999h" is longer than 2562047h, the longest duration; use a duration such as 90s or 1h30m',
  ],
  ...[-1, 512, 99_999].map((defaultMode): [object, string] => [
    { secrets: [{ name: 'a', path: 'a', defaultMode }] },
    `spec.secrets[0].defaultMode: is ${defaultMode}, expected a number from 0 to 511, which is 0777 in octal`,
  ]),
  ...['', 'Data', 'a.b'].map((name): [object, string] => [
    { upgrade: { image: 'a', volumes: [{ name, source: '/a', destination: '/b' }] } },
    `spec.upgrade.volumes[0].name: ${JSON.stringify(name)} is a name that no volume can have; it must consist of lower-case letters, digits and hyphens, and begin and end with a letter or digit`,
  ]),
  ...['', '/a/../b'].map((source): [object, string] => [
    { upgrade: { image: 'a', volumes: [{ name: 'a', source, destination: '/b' }] } },
    `spec.upgrade.volumes[0].source: is ${JSON.stringify(source)}, expected a path on the node without "..", such as /etc/rancher`,
  ]),
  [
    { upgrade: { image: 'a', volumes: [{ name: 'a', source: '/a', destination: '' }] } },
    'spec.upgrade.volumes[0].destination: is "", expected a path in the container, such as /etc/rancher',
  ],
  [
    { prepare: { image: 'a', volumes: [{ name: 'a', source: '/a', destination: '' }] } },
    'spec.prepare.volumes[0].destination: is "", expected a path in the container, such as /etc/rancher',
  ],
  [
    {
      upgrade: {
        image: 'a',
        volumes: ['/a', '/b'].map((destination) => ({ name: 'a', source: '/a', destination })),
      },
    },
    'spec.upgrade.volumes[1].name: "a" is also the name of spec.upgrade.volumes[0]; give each volume its own name',
  ],
  [
    { upgrade: { image: 'a', volumes: [{ name: 'pod-info', source: '/a', destination: '/a' }] } },
    'spec.upgrade.volumes[0].name: "pod-info" is also the name of a volume that each Job has; give each volume its own name',
  ],
  [
    {
      secrets: [{ name: 'a', path: '' }],
      upgrade: { image: 'a', volumes: [{ name: 'secret-a', source: '/a', destination: '/a' }] },
    },
    'spec.upgrade.volumes[0].name: "secret-a" is also the name of the volume for the Secret of spec.secrets[0]; give each volume its own name',
  ],
  [
    {
      secrets: [
        { name: 'a', path: '/a' },
        { name: 'a', path: '/b' },
      ],
    },
    'spec.secrets[1].name: "a" is also the Secret of spec.secrets[0]; list each Secret once',
  ],
  [
    {
      upgrade: {
        image: 'a',
        volumes: ['a', 'b'].map((name) => ({ name, source: '/a', destination: '/a' })),
      },
    },
    'spec.upgrade.volumes[1].destination: "/a" is also the destination of spec.upgrade.volumes[0]; give each volume its own destination',
  ],
  [
    { prepare: { image: 'a', volumes: [{ name: 'a', source: '/a', destination: '/host' }] } },
    'spec.prepare.volumes[0].destination: "/host" is also where each Job mounts the root of the node; give each volume its own destination',
  ],
  [
    {
      secrets: [{ name: 'a', path: '' }],
      upgrade: {
        image: 'a',
        volumes: [{ name: 'a', source: '/a', destination: '/run/system-upgrade/secrets/a' }],
      },
    },
    'spec.upgrade.volumes[0].destination: "/run/system-upgrade/secrets/a" is also the path of spec.secrets[0]; give each volume its own destination',
  ],
  [
    { secrets: [{ name: 'a', path: '/run/system-upgrade/pod' }] },
    'spec.secrets[0].path: "/run/system-upgrade/pod" is also where each Job mounts the labels of its pod; give each Secret its own path',
  ],
  ...['update.k3s.io', ' https://update.k3s.io', 'https://update.k3s.io ', 'https://a\nb'].map(
    (channel): [object, string] => [
      { version: '', channel },
      `spec.channel: ${JSON.stringify(channel)} is not an http or https URL`,
    ],
  ),
])('%j can never work, and the controller says the same', (spec, problem) => {
  const plan = buildCattlePlan('p', spec);
  expect(fieldFindings(plan)).toEqual({ problems: [problem], warnings: [] });
  const { problems } = resolveLatest(plan, undefined);
  // The controller asks the channel, and a condition of its own says what came of it.
  if ('channel' in spec) expect(problems).toMatchObject([{ code: 'ChannelUnanswered' }]);
  else expect(problems).toEqual([{ code: 'InvalidPlan', message: problem }]);
});

test('the condition of a Plan names each wrong field', () => {
  const plan = buildCattlePlan('p', { priorityClassName: '..', drain: { timeout: '90' } });
  const { problems } = resolveLatest(plan, undefined);
  expect(problems).toHaveLength(2);
  const message = problems.map((problem) => problem.message).join('. ');
  expect(conditionsOf(plan, problems)).toMatchObject([
    { type: 'Validated', status: 'False', message },
    { type: 'LatestResolved', status: 'True' },
  ]);
});

test.each<[object, string[]]>([
  [{ drain: { timeout: '90s' } }, []],
  [{ drain: { timeout: '500000\u03bcs' } }, []],
  ...[
    'rancher/system-agent',
    'ubuntu',
    'Registry.example:5000/a/b__c:v1.2.3-k3s1',
    'localhost/x',
    `ghcr.io/a/b:v1@sha256:${'ab'.repeat(32)}`,
    '[::1]:5000/a',
  ].map((image): [object, string[]] => [{ upgrade: { image } }, []]),
  [{ tolerations: [{ key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true' }] }, []],
  [{ drain: { timeout: 0 } }, []],
  ...['-5s', -5].map((timeout): [object, string[]] => [
    { drain: { timeout } },
    [
      `spec.drain.timeout: ${JSON.stringify(timeout)} is below zero, so a drain in the Job gives up at once, and a drain by the leader may last as long as the Job; use a duration such as 90s or 1h30m`,
    ],
  ]),
  [{ drain: { timeout: '2562047h' } }, []],
  [
    { secrets: [0, 0o777].map((defaultMode, at) => ({ name: `a${at}`, path: '', defaultMode })) },
    [],
  ],
  [{ upgrade: { image: 'a', volumes: [{ name: 'a', source: '/a..b', destination: '/b' }] } }, []],
  [{ upgrade: { image: 'a', volumes: [{ name: 'a', source: '/a', destination: '/a:/b' }] } }, []],
  [{ tolerations: [{ operator: 'Exists' }, { key: 'a', value: 'b', effect: 'NoSchedule' }] }, []],
  [{ secrets: [{ name: 'a-b', path: 'a' }], serviceAccountName: 'a.b' }, []],
  [
    { drain: { timeout: 60 } },
    [
      'spec.drain.timeout: 60 means nanoseconds, which is 60ns; use a duration such as 90s or 1h30m',
    ],
  ],
  [
    { drain: { timeout: 60_000_000_000 } },
    [
      'spec.drain.timeout: 60000000000 means nanoseconds, which is 1m0s; the controller of Rancher cannot read a number above 2147483647; use a duration such as 90s or 1h30m',
    ],
  ],
  [
    { version: 'v1', channel: 'update.k3s.io' },
    [
      'spec.channel: "update.k3s.io" is not an http or https URL; it is ignored, because spec.version is set',
    ],
  ],
])('%j works, with warnings', (spec, warnings) => {
  expect(fieldFindings(buildCattlePlan('p', spec))).toEqual({ problems: [], warnings });
});

test('a tag that differs from the version, or is no version, is a warning for the author of the Plan', () => {
  const warningsOf = (image: string) =>
    fieldFindings(buildCattlePlan('p', { version: 'v1.36.3+k3s1', upgrade: { image } })).warnings;
  expect(warningsOf('rancher/k3s-upgrade:v1.36.4-k3s1')).toEqual([
    'spec.upgrade.image: the tag of the image installs v1.36.4+k3s1, but the version of the Plan is v1.36.3-k3s1; the tag counts, so remove the tag or name the same version',
  ]);
  expect(warningsOf('rancher/k3s-upgrade:latest')).toHaveLength(1);
  expect(warningsOf('rancher/k3s-upgrade')).toEqual([]);
  expect(warningsOf('example.com/script:latest')).toEqual([]);
});

const FORMER = 'node-role.kubernetes.io/master';
const PRESENT = 'node-role.kubernetes.io/control-plane';
const LACK = `spec.nodeSelector: servers of current releases of K3s and RKE2 do not have the label ${FORMER}`;

test.each<[string, object, string[]]>([
  [
    'selects servers by the former label',
    { matchExpressions: [{ key: FORMER, operator: 'In', values: ['true'] }] },
    [`${LACK}, so the Plan selects no server and may be Complete at once; use ${PRESENT}`],
  ],
  [
    'selects servers by the former label in matchLabels',
    { matchLabels: { [FORMER]: 'true' } },
    [`${LACK}, so the Plan selects no server and may be Complete at once; use ${PRESENT}`],
  ],
  [
    'leaves servers out by the former label',
    { matchExpressions: [{ key: FORMER, operator: 'NotIn', values: ['true'] }] },
    [`${LACK}, so the Plan selects servers, too; use ${PRESENT}`],
  ],
  [
    'leaves servers out by both labels',
    {
      matchExpressions: [FORMER, PRESENT].map((key) => ({ key, operator: 'DoesNotExist' })),
    },
    [],
  ],
])(
  'the author of a Plan that %s is told what servers have now',
  (_name, nodeSelector, warnings) => {
    const plan = buildCattlePlan('p', { nodeSelector });
    expect(fieldFindings(plan)).toEqual({ problems: [], warnings });
  },
);

test.each<[string, object]>([
  ['without v', { version: '1.36.3+k3s1', upgrade: { image: 'rancher/k3s-upgrade' } }],
  ['without build', { version: 'v1.36.3', upgrade: { image: 'rancher/k3s-upgrade' } }],
  ['of the other product', { version: 'v1.36.3+k3s1', upgrade: { image: 'rancher/rke2-upgrade' } }],
])('the author of a Plan with a version %s is told that no image has such a tag', (_name, spec) => {
  const [warning, ...more] = fieldFindings(buildCattlePlan('p', spec)).warnings;
  expect(warning).toContain('so no pod can start; correct the version or the image');
  expect(more).toEqual([]);
});

test('a Job that ends before its drain may end is a warning for the author of the Plan', () => {
  const warningsOf = (jobActiveDeadlineSecs: number, timeout: string | number) =>
    fieldFindings(buildCattlePlan('p', { jobActiveDeadlineSecs, drain: { timeout } })).warnings;
  expect(warningsOf(900, '1h')).toEqual([
    'spec.jobActiveDeadlineSecs: is 900, but spec.drain.timeout is 1h0m0s, so a Job that drains its node itself may end before the upgrade; use more seconds than the drain may take',
  ]);
  expect(warningsOf(900, '15m')).toHaveLength(1);
  expect(warningsOf(901, '15m')).toEqual([]);
  expect(warningsOf(0, '1h')).toEqual([]);
});

test('a Plan that waits for servers to report a release candidate of RKE2 is told that they never do', () => {
  const spec = (version: string) => ({
    version,
    upgrade: { image: 'rancher/rke2-upgrade' },
    prepare: { image: 'rancher/rke2-upgrade', args: ['prepare', 'servers'] },
  });
  expect(fieldFindings(buildCattlePlan('p', spec('v1.36.3-rc1+rke2r1'))).warnings).toEqual([
    'spec.prepare: the servers report no release candidate, so the wait for v1.36.3-rc1+rke2r1 never ends; remove spec.prepare, or use a release',
  ]);
  expect(fieldFindings(buildCattlePlan('p', spec('v1.36.3+rke2r1'))).warnings).toEqual([]);
});
