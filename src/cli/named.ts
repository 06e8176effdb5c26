/** Says which arguments and options of commands are names in the cluster, so that completion can offer them. */

export type NamesOf = 'nodes' | 'plans';

const NAMED: ReadonlyMap<string, NamesOf> = new Map([
  ['node', 'nodes'],
  ['plan', 'plans'],
  ['object', 'plans'],
  ['--plan', 'plans'],
]);

/**
 * Returns whether an argument or option takes the name of a node or the name of a plan; undefined if it takes another
 * value. `key` is an option, or the name of an argument.
 */
export function namesOf(key: string | undefined): NamesOf | undefined {
  return NAMED.get(key ?? '');
}
