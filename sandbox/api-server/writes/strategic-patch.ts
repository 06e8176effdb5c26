/** Strategic merge patches of built-in kinds: merge patches that know which lists have keys. */
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../../src/util/json.ts';
import { notImplemented } from '../failure.ts';

/** The lists that are merged by a member of their items; '' marks a list of scalars. All other lists are replaced. */
const MERGED: Readonly<Record<string, string>> = {
  conditions: 'type',
  addresses: 'type',
  ownerReferences: 'uid',
  finalizers: '',
  containers: 'name',
  initContainers: 'name',
  volumes: 'name',
  imagePullSecrets: 'name',
};

const DELETE_FROM = '$deleteFromPrimitiveList/';

/** Does not change the target. Refuses unknown directives with 501. */
export function strategicPatch(
  target: unknown,
  patch: Record<string, unknown>,
): Record<string, unknown> {
  const { $patch: directive, ...members } = patch;
  if (directive === 'delete') return {};
  const result: Record<string, unknown> =
    isRecord(target) && directive !== 'replace' ? { ...target } : {};
  for (const [member, value] of Object.entries(members)) {
    if (member.startsWith(DELETE_FROM)) removeFrom(result, member.slice(DELETE_FROM.length), value);
    else if (member.startsWith('$'))
      throw notImplemented(`the directive ${member} of strategic merge patches`);
    else if (value === null) delete result[member];
    else result[member] = mergeMember(member, result[member], value);
  }
  return result;
}

function mergeMember(member: string, target: unknown, value: unknown): unknown {
  if (isRecord(value)) return strategicPatch(target, value);
  const key = MERGED[member];
  if (!Array.isArray(value) || key === undefined) return value;
  const present: unknown[] = Array.isArray(target) ? target : [];
  return key === ''
    ? [...new Set([...(value as unknown[]), ...present])]
    : mergeByKey(present, value, key);
}

function removeFrom(holder: Record<string, unknown>, member: string, gone: unknown): void {
  const list: unknown = holder[member];
  if (!Array.isArray(list) || !Array.isArray(gone)) return;
  holder[member] = list.filter((item) => !gone.some((other) => isDeepStrictEqual(other, item)));
}

/** New items come first, in the order of the patch. */
function mergeByKey(
  present: readonly unknown[],
  patch: readonly unknown[],
  key: string,
): unknown[] {
  const result = [...present];
  const added: unknown[] = [];
  for (const item of patch.filter(isRecord)) {
    const index = result.findIndex((other) => isRecord(other) && other[key] === item[key]);
    if (item['$patch'] === 'delete') result.splice(index, index === -1 ? 0 : 1);
    else if (index === -1) added.push(strategicPatch({}, item));
    else result[index] = strategicPatch(result[index], item);
  }
  return [...added, ...result];
}
