/** Reads from the DaemonSet of Kured how many nodes Kured reboots at once. */
import type { KubeObject } from '../kube/resources.ts';
import { isRecord, isText, recordsIn } from '../util/json.ts';

const FLAG = '--concurrency';
/** The environment variable that Kured reads if the flag `--concurrency` is missing. */
const VARIABLE = 'KURED_CONCURRENCY';

/**
 * The most nodes that Kured may reboot at once if Refit takes its lock. Refit writes one lock for each of these nodes
 * into one annotation, and the size of an annotation is limited.
 */
export const MOST_AT_ONCE = 500;

/** Returns `--concurrency` of Kured; undefined if the DaemonSet does not show the number, or if it is larger than `MOST_AT_ONCE`. */
export function concurrencyOf(daemonSet: KubeObject): number | undefined {
  const { spec } = daemonSet as KubeObject & { readonly spec?: unknown };
  const template = isRecord(spec) ? spec['template'] : undefined;
  const pod = isRecord(template) ? template['spec'] : undefined;
  const containers = isRecord(pod) ? recordsIn(pod['containers']) : [];
  const values = containers.flatMap(
    (container) => flagOf(container) ?? variableOf(container) ?? [],
  );
  const [value = '1'] = values;
  const isUsable = /^[0-9]{1,9}$/.test(value) && Number(value) <= MOST_AT_ONCE;
  return isUsable ? Math.max(1, Number(value)) : undefined;
}

/** Returns the value of the last `--concurrency` flag. If the flag is repeated, Kured uses the last value. */
function flagOf({ command, args }: Readonly<Record<string, unknown>>): string | undefined {
  const words = [command, args].flatMap((list) =>
    Array.isArray(list) ? (list as unknown[]).filter(isText) : [],
  );
  const values = words.flatMap((word, index) => {
    if (word === FLAG) return [words[index + 1] ?? ''];
    return word.startsWith(`${FLAG}=`) ? [word.slice(FLAG.length + 1)] : [];
  });
  return values.at(-1);
}

/**
 * Returns the value of the variable; empty if the variable gets its value from another object. Kured treats an empty
 * variable like a missing one.
 */
function variableOf({ env }: Readonly<Record<string, unknown>>): string | undefined {
  const variable = recordsIn(env).findLast(({ name }) => name === VARIABLE);
  if (variable === undefined || variable['value'] === '') return undefined;
  const { value } = variable;
  return isText(value) ? value : '';
}
