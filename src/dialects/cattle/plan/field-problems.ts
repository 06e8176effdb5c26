/**
 * Finds fields of a Plan that the API server accepts, but with which no Job of the Plan can work. The original
 * controller accepts such a Plan, and then each of its Jobs is refused or fails. Refit refuses the Plan before any node
 * is cordoned, in the controller as in each command. The warnings are only for people who write Plans.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { type DrainSpec } from '../../../api/cattle/workload.ts';
import { faultOfLabelName, faultOfObjectName } from '../../../api/names.ts';
import { CONTROL_PLANE } from '../../../kube/control-plane-label.ts';
import { selectorFault } from '../../../kube/selectors.ts';
import { faultOfGoDuration, formatGoDuration, parseGoDuration } from '../../../util/duration.ts';
import { onceForEach } from '../../../util/memo.ts';
import { doubtAbout, installedBy, isInstaller, plannedVersion } from './installed-version.ts';
import { HOST_ROOT, mountPathOf, POD_INFO } from './job.ts';
import { shortenedName } from './names.ts';

export interface FieldFindings {
  /** A sentence for each field with which no Job can work. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

type Spec = NonNullable<CattlePlan['spec']>;

/** Returns a sentence for each field with which no Job of the Plan can work. A channel is not a part of the Jobs. */
export const fieldProblems = onceForEach(({ spec = {} as Spec }: CattlePlan): readonly string[] => {
  const { serviceAccountName = '', priorityClassName = '', drain } = spec;
  const names = {
    'spec.serviceAccountName': serviceAccountName,
    'spec.priorityClassName': priorityClassName,
  };
  return [
    ...Object.entries(names).flatMap(([field, name]) =>
      name === '' ? [] : nameProblems(field, name),
    ),
    ...imageProblems(spec),
    ...secretProblems(spec),
    ...pathProblems(spec),
    ...modeProblems(spec),
    ...volumeProblems(spec),
    ...volumeNameProblems(spec),
    ...tolerationProblems(spec),
    ...(drain === undefined ? [] : timeoutFindings(drain).problems),
  ];
});

/** Returns the findings for people who write the Plan. */
export function fieldFindings(plan: CattlePlan): FieldFindings {
  const { spec = {} as Spec } = plan;
  const { drain, channel = '', version } = spec;
  return {
    problems: [...fieldProblems(plan), ...(version ? [] : channelFaults(channel))],
    warnings: [
      ...(drain === undefined ? [] : timeoutFindings(drain).warnings),
      ...versionWarnings(plan),
      ...labelWarnings(spec),
      ...deadlineWarnings(spec),
      ...candidateWarnings(spec),
      ...(version
        ? channelFaults(channel).map(
            (fault) => `${fault}; it is ignored, because spec.version is set`,
          )
        : []),
    ],
  };
}

function versionWarnings(plan: CattlePlan): string[] {
  const doubt = doubtAbout(installedBy(plan, plannedVersion(plan) ?? ''));
  return doubt === undefined ? [] : [`spec.upgrade.image: ${doubt}`];
}

const NOTHING: FieldFindings = { problems: [], warnings: [] };

/** The label that earlier releases of K3s and RKE2 set on servers. */
const FORMER_SERVER_LABEL = 'node-role.kubernetes.io/master';

/** Returns a warning if the Plan tells servers from agents only by a label that servers no longer have. */
function labelWarnings({ nodeSelector }: Spec): string[] {
  const { matchLabels = {}, matchExpressions = [] } = nodeSelector ?? {};
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  if (!keys.includes(FORMER_SERVER_LABEL) || keys.includes(CONTROL_PLANE)) return [];
  const excluded = ['NotIn', 'DoesNotExist'];
  const isExcluding = matchExpressions.some(
    ({ key, operator }) => key === FORMER_SERVER_LABEL && excluded.includes(operator),
  );
  const effect = isExcluding
    ? 'so the Plan selects servers, too'
    : 'so the Plan selects no server and may be Complete at once';
  return [
    `spec.nodeSelector: servers of current releases of K3s and RKE2 do not have the label ${FORMER_SERVER_LABEL}, ${effect}; use ${CONTROL_PLANE}`,
  ];
}

function nameProblems(field: string, name: string): string[] {
  const fault = faultOfObjectName(name);
  return fault === undefined
    ? []
    : [`${field}: ${JSON.stringify(name)} is a name that no object can have; it ${fault}`];
}

/** Matches an image reference as container runtimes parse it: a host, a path in lower case, a tag and a digest. */
const IMAGE =
  /^(?:[A-Za-z0-9.-]+(?::\d+)?\/|\[[0-9A-Fa-f:]+\](?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\w[\w.-]{0,127})?(?:@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?$/;

function imageProblems({ prepare, upgrade }: Spec): string[] {
  return Object.entries({ prepare, upgrade }).flatMap(([part, container]) => {
    if (container === undefined || IMAGE.test(container.image)) return [];
    return [
      `spec.${part}.image: ${JSON.stringify(container.image)} is not the name of an image; use for example rancher/k3s-upgrade`,
    ];
  });
}

/** The paths and names that a Job mounts in each container. They do not depend on the Plan. */
const OWN_PATHS: readonly Use[] = [
  { value: HOST_ROOT.mountPath, user: 'where each Job mounts the root of the node' },
  { value: POD_INFO.mountPath, user: 'where each Job mounts the labels of its pod' },
];
const OWN_NAMES: readonly Use[] = [HOST_ROOT, POD_INFO].map(({ name }) => ({
  value: name,
  user: 'the name of a volume that each Job has',
}));

/** A name or a path that a Job uses. */
interface Use {
  readonly value: string;
  /** A phrase that describes what uses the name or the path. It completes the sentence `"/host" is also …`. */
  readonly user: string;
}

/** A name or a path in a field of the Plan. It is a problem if an earlier use has the same name or path. */
interface OwnUse extends Use {
  readonly field: string;
  /** The text in the field. It may be only the last part of the path. */
  readonly written: string;
  readonly advice: string;
}

/**
 * Returns a problem for each name or path in `uses` that is in `taken` or in an earlier item of `uses`. The API server
 * refuses two volumes with one name and two mounts with one path.
 */
function repetitions(taken: readonly Use[], uses: readonly OwnUse[]): string[] {
  const users = new Map(taken.map(({ value, user }) => [value, user]));
  return uses.flatMap(({ field, value, user, written, advice }) => {
    const first = users.getOrInsert(value, user);
    return first === user
      ? []
      : [`${field}: ${JSON.stringify(written)} is also ${first}; ${advice}`];
  });
}

function pathsOfSecrets({ secrets = [] }: Spec): OwnUse[] {
  return secrets.map((secret, index) => ({
    field: `spec.secrets[${index}].path`,
    value: mountPathOf(secret),
    user: `the path of spec.secrets[${index}]`,
    written: secret.path,
    advice: 'give each Secret its own path',
  }));
}

function pathsOfVolumes(part: 'prepare' | 'upgrade', spec: Spec): OwnUse[] {
  return (spec[part]?.volumes ?? []).flatMap(({ destination }, index) => {
    const at = `spec.${part}.volumes[${index}]`;
    const user = `the destination of ${at}`;
    const advice = 'give each volume its own destination';
    // An empty destination is reported as a different problem.
    if (destination === '') return [];
    return { field: `${at}.destination`, value: destination, user, written: destination, advice };
  });
}

/** Returns a problem for each path that one container would mount twice. */
function pathProblems(spec: Spec): string[] {
  const ofSecrets = pathsOfSecrets(spec);
  return [
    ...repetitions(OWN_PATHS, ofSecrets),
    ...(['prepare', 'upgrade'] as const).flatMap((part) =>
      repetitions([...ofSecrets, ...OWN_PATHS], pathsOfVolumes(part, spec)),
    ),
  ];
}

/**
 * Returns a problem for each name that two volumes of the pod would have. The volumes of `prepare` are not included,
 * because the Job only mounts them.
 */
function volumeNameProblems({ secrets = [], upgrade }: Spec): string[] {
  const ofSecrets = secrets.map(({ name }, index) => ({
    field: `spec.secrets[${index}].name`,
    value: shortenedName('secret', name),
    user: `the Secret of spec.secrets[${index}]`,
    written: name,
    advice: 'list each Secret once',
  }));
  const ofVolumes = (upgrade?.volumes ?? []).map(({ name }, index) => ({
    field: `spec.upgrade.volumes[${index}].name`,
    value: name,
    user: `the name of spec.upgrade.volumes[${index}]`,
    written: name,
    advice: 'give each volume its own name',
  }));
  const ofJob = ofSecrets.map(({ value, user }) => ({
    value,
    user: `the name of the volume for ${user}`,
  }));
  return [...repetitions([], ofSecrets), ...repetitions([...OWN_NAMES, ...ofJob], ofVolumes)];
}

/** Returns a problem for each file mode that the API server refuses in a volume. */
function modeProblems({ secrets = [] }: Spec): string[] {
  return secrets.flatMap(({ defaultMode = 0 }, index) =>
    defaultMode >= 0 && defaultMode <= 0o777
      ? []
      : [
          `spec.secrets[${index}].defaultMode: is ${defaultMode}, expected a number from 0 to 511, which is 0777 in octal`,
        ],
  );
}

/**
 * Checks the rules of the API server for volumes with a path of the node, and for the mounts of these volumes. For the
 * volumes of `prepare`, only the mounts are checked.
 */
function volumeProblems(spec: Spec): string[] {
  const ofVolumes = (spec.upgrade?.volumes ?? []).flatMap(({ name, source }, index) => {
    const at = `spec.upgrade.volumes[${index}]`;
    const fault = faultOfLabelName(name);
    const isSource = source !== '' && !source.split('/').includes('..');
    const checks: readonly [boolean, string][] = [
      [
        fault !== undefined,
        `${at}.name: ${JSON.stringify(name)} is a name that no volume can have; it ${fault}`,
      ],
      [
        !isSource,
        `${at}.source: is ${JSON.stringify(source)}, expected a path on the node without "..", such as /etc/rancher`,
      ],
    ];
    return checks.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []));
  });
  const ofMounts = (['prepare', 'upgrade'] as const).flatMap((part) =>
    (spec[part]?.volumes ?? []).flatMap(({ destination }, index) =>
      destination === ''
        ? [
            `spec.${part}.volumes[${index}].destination: is "", expected a path in the container, such as /etc/rancher`,
          ]
        : [],
    ),
  );
  return [...ofVolumes, ...ofMounts];
}

function secretProblems({ secrets = [] }: Spec): string[] {
  return secrets.flatMap(({ name }, index) => {
    const field = `spec.secrets[${index}].name`;
    const problems = nameProblems(field, name);
    if (problems.length > 0) return problems;
    // The Job names a volume after the Secret, and names of volumes have no dots.
    return faultOfLabelName(shortenedName('secret', name)) === undefined
      ? []
      : [
          `${field}: ${JSON.stringify(name)} cannot be mounted, because the Job names a volume after it; use a Secret without a dot in its name`,
        ];
  });
}

/** Returns a warning if the Job ends before a drain in it may end. */
function deadlineWarnings({ drain, jobActiveDeadlineSecs = 0 }: Spec): string[] {
  const { timeout } = drain ?? {};
  const nanoseconds = typeof timeout === 'string' ? parseGoDuration(timeout) : timeout;
  if (typeof nanoseconds !== 'number' || jobActiveDeadlineSecs <= 0) return [];
  return jobActiveDeadlineSecs * 1e9 > nanoseconds
    ? []
    : [
        `spec.jobActiveDeadlineSecs: is ${jobActiveDeadlineSecs}, but spec.drain.timeout is ${formatGoDuration(nanoseconds)}, so a Job that drains its node itself may end before the upgrade; use more seconds than the drain may take`,
      ];
}

/** Returns a warning if the Plan waits for kubelets to report a release candidate of RKE2, which they never do. */
function candidateWarnings({ version = '', prepare }: Spec): string[] {
  const isEndless =
    /-rc\.?\d+[-+]rke2r/.test(version) &&
    prepare?.args?.[0] === 'prepare' &&
    isInstaller(prepare.image);
  return isEndless
    ? [
        `spec.prepare: the servers report no release candidate, so the wait for ${version} never ends; remove spec.prepare, or use a release`,
      ]
    : [];
}

const OPERATORS = ['Exists', 'Equal', 'Lt', 'Gt'];
const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** Returns a problem for each toleration that the API server would refuse in a pod. Absent and empty values are the same. */
function tolerationProblems({ tolerations = [] }: Spec): string[] {
  return (tolerations as readonly Toleration[]).flatMap((toleration, index) => {
    const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration;
    const at = `spec.tolerations[${index}]`;
    const isUnknown = operator !== '' && !OPERATORS.includes(operator);
    const found = (text: string): string => (text === '' ? 'is missing' : `is "${text}"`);
    const checks: readonly [boolean, string][] = [
      [isUnknown, `${at}.operator: is "${operator}", expected Exists or Equal`],
      [
        effect !== '' && !EFFECTS.includes(effect),
        `${at}.effect: is "${effect}", expected NoSchedule, PreferNoSchedule or NoExecute`,
      ],
      [
        key === '' && operator !== 'Exists' && !isUnknown,
        `${at}.operator: ${found(operator)}, expected Exists, because the toleration has no key`,
      ],
      [
        operator === 'Exists' && value !== '',
        `${at}.value: is "${value}", but operator Exists allows no value; remove it, or use Equal`,
      ],
      [
        key !== '' && selectorFault({ matchLabels: { [key]: '' } }) !== undefined,
        `${at}.key: is "${key}", expected the key of a taint such as node-role.kubernetes.io/control-plane`,
      ],
      [
        tolerationSeconds !== undefined && effect !== 'NoExecute',
        `${at}.effect: ${found(effect)}, expected NoExecute, because tolerationSeconds is set`,
      ],
    ];
    return checks.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []));
  });
}

interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/** The largest number in a timeout that the original can read. If one Plan has a larger number, the original cannot read any Plan. */
const MOST_OF_ORIGINAL = 2 ** 31 - 1;

/** Returns the findings about the timeout of the drain. kubectl reads a text as a duration of Go, and a number as nanoseconds. */
function timeoutFindings({ timeout }: DrainSpec): FieldFindings {
  if (timeout === undefined) return NOTHING;
  const field = 'spec.drain.timeout';
  const wanted = 'use a duration such as 90s or 1h30m';
  const isWhole = typeof timeout === 'number' && Number.isInteger(timeout);
  const nanoseconds = isWhole
    ? timeout
    : parseGoDuration(typeof timeout === 'string' ? timeout : '');
  const written = `${field}: ${JSON.stringify(timeout)}`;
  if (nanoseconds === undefined) {
    const fault = faultOfGoDuration(typeof timeout === 'string' ? timeout : '');
    return { problems: [`${written} ${fault}; ${wanted}`], warnings: [] };
  }
  // A node without pods to evict can still be upgraded, so this is no problem of the Plan.
  if (nanoseconds < 0) {
    const effect =
      'is below zero, so a drain in the Job gives up at once, and a drain by the leader may last as long as the Job';
    return { problems: [], warnings: [`${written} ${effect}; ${wanted}`] };
  }
  if (!isWhole || timeout === 0) return NOTHING;
  const meaning = `${field}: ${timeout} means nanoseconds, which is ${formatGoDuration(timeout)}`;
  const warning =
    timeout > MOST_OF_ORIGINAL
      ? `${meaning}; the controller of Rancher cannot read a number above ${MOST_OF_ORIGINAL}; ${wanted}`
      : `${meaning}; ${wanted}`;
  return { problems: [], warnings: [warning] };
}

/** Returns a sentence if no request can be sent to the channel; empty for a usable address, and for none. */
export function channelFaults(channel: string): string[] {
  // White space is checked separately. The URL class ignores white space, but the original controller uses it as a part
  // of the address.
  const isUrl = !/\s/.test(channel) && /^https?:$/.test(URL.parse(channel)?.protocol ?? '');
  return channel === '' || isUrl
    ? []
    : [`spec.channel: ${JSON.stringify(channel)} is not an http or https URL`];
}
