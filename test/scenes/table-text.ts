/** Prints the table with which the API server answers `kubectl get`, as kubectl prints it. */
import { pathOf, type Resource } from '../../src/kube/resources.ts';

interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
  readonly rows: readonly {
    readonly cells: readonly unknown[];
    readonly object: { readonly metadata: { readonly namespace?: string } };
  }[];
}

const AS_TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';
/** The number of spaces between two columns. */
const GAP = 3;

/** Resolves with the table of all objects of the kind; with `No resources found` if there are none. */
export async function tableText(server: string, resource: Resource, isWide: boolean) {
  const answer = await fetch(`${server}${pathOf(resource)}`, { headers: { accept: AS_TABLE } });
  const { columnDefinitions, rows } = (await answer.json()) as Table;
  if (rows.length === 0) return 'No resources found';
  const shown = columnDefinitions.flatMap(({ priority }, index) =>
    priority === 0 || isWide ? index : [],
  );
  const head = shown.map((index) => (columnDefinitions[index]?.name ?? '').toUpperCase());
  const lines = rows.map(({ cells, object: { metadata } }) => {
    const values = shown.map((index) => textOf(cells[index]));
    return resource.namespaced ? [metadata.namespace ?? '', ...values] : values;
  });
  return aligned([resource.namespaced ? ['NAMESPACE', ...head] : head, ...lines]);
}

function textOf(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const padded = (line: readonly string[]): string =>
    line.map((cell, column) => cell.padEnd((widths[column] ?? 0) + GAP)).join('');
  return lines.map((line) => padded(line).trimEnd()).join('\n');
}
