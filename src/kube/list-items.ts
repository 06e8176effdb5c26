/** Unpacks lists in files. `kubectl get -o yaml` writes several objects as one List, and `kubectl apply` reads it. */
import { isRecord } from '../util/json.ts';

export interface ListItem {
  readonly value: unknown;
  /** The path of the item in its document, such as `items[0]`; undefined for an object that is not in a list. */
  readonly path: string | undefined;
}

/**
 * Returns the objects of a document: the items of a List, or the value itself. Items of a typed list, such as a PlanList, may lack
 * kind and apiVersion; they get those of their list, as in kubectl.
 */
export function itemsOf(value: unknown): ListItem[] {
  const { apiVersion, kind, items } = isRecord(value) ? value : {};
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items))
    return [{ value, path: undefined }];
  const own = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
  return items.map((item: unknown, index) => ({
    value: isRecord(item) ? { ...own, ...item } : item,
    path: `items[${index}]`,
  }));
}
