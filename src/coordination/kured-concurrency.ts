/** Recognizes the DaemonSet of Kured, and reads its settings: where its lock is, and how many nodes it reboots at once. */
import type { KubeObject } from '../kube/resources.ts';
import { isRecord, isText, recordsIn } from '../util/json.ts';

/** The place of the lock if Kured runs without `--ds-namespace`, `--ds-name` and `--lock-annotation`. */
export const DEFAULT_PLACE: LockPlace = {
  namespace: 'kube-system',
  name: 'kured',
  annotation: 'weave.works/kured-node-lock',
};

export interface LockPlace {
  /** The namespace and the name of the DaemonSet that has the annotation. */
  readonly namespace: string;
  readonly name: string;
  readonly annotation: string;
}

type Container = Readonly<Record<string, unknown>>;

/**
 * The most nodes that Kured may reboot at once if Refit takes its lock. Refit writes one lock for each of these nodes
 * into one annotation, and the size of an annotation is limited.
 */
export const MOST_AT_ONCE = 500;

/** Returns `--concurrency` of Kured; undefined if the DaemonSet does not show the number, or if it is larger than `MOST_AT_ONCE`. */
export function concurrencyOf(daemonSet: KubeObject): number | undefined {
  const value = settingOf(daemonSet, 'concurrency') ?? '1';
  const isUsable = /^[0-9]{1,9}$/.test(value) && Number(value) <= MOST_AT_ONCE;
  return isUsable ? Math.max(1, Number(value)) : undefined;
}

/** Returns where the lock is, as the flags and the environment variables of the DaemonSet say. */
export function lockPlaceOf(daemonSet: KubeObject): LockPlace {
  return {
    namespace: settingOf(daemonSet, 'ds-namespace') ?? DEFAULT_PLACE.namespace,
    name: settingOf(daemonSet, 'ds-name') ?? DEFAULT_PLACE.name,
    annotation: settingOf(daemonSet, 'lock-annotation') ?? DEFAULT_PLACE.annotation,
  };
}

/**
 * Returns true if one of the containers runs the program `kured`, or has an image with this name. So Kured is found
 * whatever the names of the DaemonSet and of its namespace are.
 */
export function isKured(daemonSet: KubeObject): boolean {
  return containersOf(daemonSet).some(({ command, image }) => {
    const [program] = textsIn(command);
    if (program !== undefined && lastPart(program) === 'kured') return true;
    const [repository = ''] = isText(image) ? image.split('@') : [];
    return lastPart(repository).split(':')[0] === 'kured';
  });
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function textsIn(list: unknown): string[] {
  return Array.isArray(list) ? (list as unknown[]).filter(isText) : [];
}

function containersOf(daemonSet: KubeObject): readonly Container[] {
  const { spec } = daemonSet as KubeObject & { readonly spec?: unknown };
  const template = isRecord(spec) ? spec['template'] : undefined;
  const pod = isRecord(template) ? template['spec'] : undefined;
  return isRecord(pod) ? recordsIn(pod['containers']) : [];
}

/** Returns the value of a flag, or of the environment variable that Kured reads if the flag is missing. */
function settingOf(daemonSet: KubeObject, name: string): string | undefined {
  const variable = `KURED_${name.toUpperCase().replaceAll('-', '_')}`;
  const [value] = containersOf(daemonSet).flatMap(
    (container) => flagOf(container, `--${name}`) ?? variableOf(container, variable) ?? [],
  );
  return value;
}

/** Returns the value of the last flag with this name. If a flag is repeated, Kured uses the last value. */
function flagOf({ command, args }: Container, flag: string): string | undefined {
  const words = [command, args].flatMap(textsIn);
  const values = words.flatMap((word, index) => {
    if (word === flag) return [words[index + 1] ?? ''];
    return word.startsWith(`${flag}=`) ? [word.slice(flag.length + 1)] : [];
  });
  return values.at(-1);
}

/**
 * Returns the value of the variable; empty if the variable gets its value from another object. Kured treats an empty
 * variable like a missing one.
 */
function variableOf({ env }: Container, wanted: string): string | undefined {
  const variable = recordsIn(env).findLast(({ name }) => name === wanted);
  if (variable === undefined || variable['value'] === '') return undefined;
  const { value } = variable;
  return isText(value) ? value : '';
}
