/** Makes deploy/chart/README.md: how to install and push the chart, and a table of its values from the comments of values.yaml. */
import { isMap, parseDocument, type YAMLMap } from 'yaml';

interface Row {
  /** Such as `k0s.replicas`. */
  readonly path: string;
  /** The default as JSON; empty for a group of values. */
  readonly value: string;
  /** The comment above the value, in one line. */
  readonly meaning: string;
}

const HEAD = `# Chart of Refit

Refit upgrades the nodes of a running Kubernetes cluster in place. \`npm run generate\` writes this page from \`values.yaml\`.

Push the image and the chart of a release to your registry, and install the chart from there. You need no checkout:

\`\`\`sh
skopeo copy --all oci-archive:refit-image.tar docker://registry.example.com/refit:VERSION
helm push refit-VERSION.tgz oci://registry.example.com/charts
helm install refit oci://registry.example.com/charts/refit --version VERSION \\
  --namespace refit-system --create-namespace --set image.repository=registry.example.com/refit
\`\`\`

If you have no registry for charts, install the chart from its file: \`helm install refit refit-VERSION.tgz …\` with the same options.

## Values

| value | default | meaning |
|---|---|---|
`;

export function chartReadme(values: string): string {
  const { contents } = parseDocument(values);
  const rows = isMap(contents) ? rowsOf(contents, '') : [];
  const lines = rows.map(({ path, value, meaning }) => {
    const shown = value === '' ? '' : `\`${value}\``;
    return `| \`${path}\` | ${cell(shown)} | ${cell(meaning)} |`;
  });
  return `${HEAD}${lines.join('\n')}\n`;
}

/** Returns a row for each value that has no values of its own, and for each group with a comment. */
function rowsOf(map: YAMLMap, parent: string): Row[] {
  return map.items.flatMap(({ key, value }, index) => {
    const path = `${parent}${String(key)}`;
    // The parser gives the comment above the first value of a nested group to the group.
    const own = (key as { commentBefore?: string }).commentBefore;
    const first = index === 0 && parent !== '' ? map.commentBefore : undefined;
    const meaning = (own ?? first ?? '').replaceAll(/\s*\n\s*/g, ' ').trim();
    if (isMap(value) && value.items.length > 0 && value.flow !== true)
      return [
        ...(meaning === '' ? [] : [{ path, value: '', meaning }]),
        ...rowsOf(value, `${path}.`),
      ];
    const text = JSON.stringify((value as { toJSON: () => unknown }).toJSON());
    return [{ path, value: text, meaning }];
  });
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
