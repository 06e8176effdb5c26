/** Unpacks lists in files. `kubectl get -o yaml` writes several objects as one List, and `kubectl apply` reads it. */
import { describeValue } from '../util/describe-issue.ts';
import { isRecord } from '../util/json.ts';

export interface ListItem {
  readonly value: unknown;
  /** The path of the item in its document, such as `items[0]`; undefined for an object that is not in a list. */
  readonly path: string | undefined;
  /**
   * The problem with the value at `path`; undefined if there is none. It is set if the items of a list are not an
   * array. In this case `value` holds no object.
   */
  readonly fault?: string;
}

/**
 * Returns the objects of a document: the items of a List and of the Lists in it, or the value itself. If items of a
 * typed list, such as a PlanList, lack kind and apiVersion, they get the values that belong to their list, as in
 * kubectl. A list whose items are null is empty.
 */
export function itemsOf(value: unknown): ListItem[] {
  return itemsAt(value, undefined);
}

function itemsAt(value: unknown, path: string | undefined): ListItem[] {
  const { apiVersion, kind, items } = isRecord(value) ? value : {};
  // An object without items is a list only if its kind is `List`. Another kind that ends with `List`, such as
  // AllowList, may be the kind of an ordinary object.
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
