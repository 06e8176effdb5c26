/** Makes the roles of pods from the documented roles in deploy/, whose subjects are users. */
import { readFileSync } from 'node:fs';
import { type Document, isMap, parseAllDocuments, type YAMLMap } from 'yaml';
import { fileOf, REFIT_NAMESPACE } from './objects.ts';

/** Service accounts that stand for a user of the role files. */
const ACCOUNTS: Readonly<Record<string, string>> = {
  'refit-controller': 'refit-controller',
  'refit-capi': 'refit-capi',
};
/** Users for whom a service account is in the file already. */
const BESIDE_ACCOUNT = new Set(['refit-cattle']);
/** People and kubelets keep their names. */
const PEOPLE = new Set(['refit-viewer']);

/** The documents of a role file: those of the viewer, or the others. The namespace of Refit is a file of its own. */
export function rightsOf(file: string, whose: 'viewer' | 'others'): string {
  const text = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
  const documents = parseAllDocuments(text).filter((document) => {
    const name = String(document.getIn(['metadata', 'name']));
    // The account is made with its Deployment.
    const isElsewhere = name === REFIT_NAMESPACE || document.get('kind') === 'ServiceAccount';
    return !isElsewhere && PEOPLE.has(name) === (whose === 'viewer');
  });
  return fileOf(`deploy/${file}`, documents.map(withAccounts));
}

/** A manifest of deploy/ as it is. */
export function copyOf(file: string): string {
  const text = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
  return fileOf(`deploy/${file}`, [text]);
}

function withAccounts(document: Document): string {
  const subjects = document.get('subjects');
  if (subjects && typeof subjects === 'object' && 'items' in subjects) {
    const list = subjects as { items: YAMLMap[] };
    list.items = list.items
      .filter((subject) => isMap(subject) && !BESIDE_ACCOUNT.has(String(subject.get('name'))))
      .map((subject) => accountFor(document, subject));
  }
  document.commentBefore = null;
  return document
    .toString({ directives: false, lineWidth: 120, flowCollectionPadding: false })
    .replace(/^---\n/, '');
}

function accountFor(document: Document, subject: YAMLMap): YAMLMap {
  const name = ACCOUNTS[String(subject.get('name'))];
  if (name === undefined) return subject;
  return document.createNode({ kind: 'ServiceAccount', name, namespace: REFIT_NAMESPACE });
}
