/**
 * Finds fields of a Plan that the API server accepts, but with which no Job of the Plan can work. The findings are for people who write
 * Plans. The controller does not use them, and carries such a Plan out as the original does.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { type DrainSpec } from '../../../api/cattle/workload.ts';
import { faultOfLabelName, faultOfObjectName } from '../../../api/names.ts';
import { selectorFault } from '../../../kube/selectors.ts';
import { formatGoDuration, parseGoDuration } from '../../../util/duration.ts';
import { mountPathOf } from './job.ts';
import { shortenedName } from './names.ts';

export interface FieldFindings {
  /** A sentence for each field with which no Job can work. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

type Spec = NonNullable<CattlePlan['spec']>;

export function fieldFindings({ spec = {} as Spec }: CattlePlan): FieldFindings {
  const { serviceAccountName = '', priorityClassName = '', drain, channel = '', version } = spec;
  const names = {
    'spec.serviceAccountName': serviceAccountName,
    'spec.priorityClassName': priorityClassName,
  };
  const timeout = drain === undefined ? NOTHING : timeoutFindings(drain);
  return {
    problems: [
      ...Object.entries(names).flatMap(([field, name]) =>
        name === '' ? [] : nameProblems(field, name),
      ),
      ...imageProblems(spec),
      ...secretProblems(spec),
      ...pathProblems(spec),
      ...modeProblems(spec),
      ...volumeProblems(spec),
      ...tolerationProblems(spec),
      ...timeout.problems,
      ...(version ? [] : channelFaults(channel)),
    ],
    warnings: [
      ...timeout.warnings,
      ...(version
        ? channelFaults(channel).map(
            (fault) => `${fault}; it is ignored, because spec.version is set`,
          )
        : []),
    ],
  };
}

const NOTHING: FieldFindings = { problems: [], warnings: [] };

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

/** Returns a problem for each path that several Secrets have, because the API server refuses a pod that mounts two volumes at one path. */
function pathProblems({ secrets = [] }: Spec): string[] {
  const paths = secrets.map(mountPathOf);
  return secrets.flatMap(({ path }, index) => {
    const first = paths.indexOf(paths[index] ?? '');
    return first === index
      ? []
      : [
          `spec.secrets[${index}].path: ${JSON.stringify(path)} is also the path of spec.secrets[${first}]; give each Secret its own path`,
        ];
  });
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
 * Returns a problem for each volume of `upgrade` that the API server refuses as a path of the node, or as a mount. Those of `prepare` are
 * not checked.
 */
function volumeProblems({ upgrade }: Spec): string[] {
  return (upgrade?.volumes ?? []).flatMap(({ name, source, destination }, index) => {
    const at = `spec.upgrade.volumes[${index}]`;
    const fault = faultOfLabelName(name);
    const isSource = source !== '' && !source.split('/').includes('..');
    const isDestination = destination !== '' && !destination.includes(':');
    const checks: readonly [boolean, string][] = [
      [
        fault !== undefined,
        `${at}.name: ${JSON.stringify(name)} is a name that no volume can have; it ${fault}`,
      ],
      [
        !isSource,
        `${at}.source: is ${JSON.stringify(source)}, expected a path on the node without "..", such as /etc/rancher`,
      ],
      [
        !isDestination,
        `${at}.destination: is ${JSON.stringify(destination)}, expected a path in the container without ":", such as /etc/rancher`,
      ],
    ];
    return checks.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []));
  });
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
  if (nanoseconds === undefined || nanoseconds < 0) {
    const fault =
      nanoseconds === undefined
        ? 'is not a duration'
        : 'is below zero, so kubectl drain gives up at once';
    return { problems: [`${field}: ${JSON.stringify(timeout)} ${fault}; ${wanted}`], warnings: [] };
  }
  if (!isWhole || timeout === 0) return NOTHING;
  const meaning = `${field}: ${timeout} means nanoseconds, which is ${formatGoDuration(timeout)}`;
  const warning =
    timeout > MOST_OF_ORIGINAL
      ? `${meaning}; the controller of Rancher cannot read a number above ${MOST_OF_ORIGINAL}; ${wanted}`
      : `${meaning}; ${wanted}`;
  return { problems: [], warnings: [warning] };
}

function channelFaults(channel: string): string[] {
  // White space is checked separately: the URL class ignores it, but for the original it is a part of the address.
  const isUrl = !/\s/.test(channel) && /^https?:$/.test(URL.parse(channel)?.protocol ?? '');
  return channel === '' || isUrl
    ? []
    : [`spec.channel: ${JSON.stringify(channel)} is not an http or https URL`];
}
