/** Says which arguments and options of commands are names in the cluster, so that completion can offer them. */

export type NamesOf = 'nodes' | 'plans';

const NAMED: ReadonlyMap<string, NamesOf> = new Map([
  ['node', 'nodes'],
  ['plan', 'plans'],
  ['object', 'plans'],
  ['--plan', 'plans'],
]);

/** Returns which names an argument or option takes, and undefined for other values. `key` is the name of an argument, or an option. */
export function namesOf(key: string | undefined): NamesOf | undefined {
  return NAMED.get(key ?? '');
}
