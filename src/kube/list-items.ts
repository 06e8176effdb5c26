/** Unpacks lists in files. `kubectl get -o yaml` writes several objects as one List, and `kubectl apply` reads it. */
import { describeValue } from '../util/describe-issue.ts';
import { isRecord } from '../util/json.ts';

export interface ListItem {
  readonly value: unknown;
  /** The path of the item in its document, such as `items[0]`; undefined for an object that is not in a list. */
  readonly path: string | undefined;
  /** What is wrong with the value at `path`, which holds no object then: the items of a list are no list. */
  readonly fault?: string;
}

/**
 * Returns the objects of a document: the items of a List and of the Lists in it, or the value itself. Items of a typed list, such as a
 * PlanList, may lack kind and apiVersion; they get those of their list, as in kubectl. A list whose items are null is empty.
 */
export function itemsOf(value: unknown): ListItem[] {
  return itemsAt(value, undefined);
}

function itemsAt(value: unknown, path: string | undefined): ListItem[] {
  const { apiVersion, kind, items } = isRecord(value) ? value : {};
  // Without items only a List is a list. Other kinds with such a name may be those of objects, such as an AllowList.
  const isList =
    typeof kind === 'string' && kind.endsWith('List') && (kind === 'List' || items !== undefined);
  if (!isList) return [{ value, path }];
  const place = path === undefined ? 'items' : `${path}.items`;
  const all = items ?? [];
  if (!Array.isArray(all))
    return [{ value: items, path: place, fault: `is ${describeValue(items)}, expected a list` }];
  const own = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
  return all.flatMap((item: unknown, index) =>
    itemsAt(isRecord(item) ? { ...own, ...item } : item, `${place}[${index}]`),
  );
}
