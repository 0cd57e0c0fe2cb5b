// Runs statements with node-postgres; see ../README.md for the interface.
'use strict';

const fs = require('node:fs');
const { Client } = require('pg');

const mode = process.argv[2];
const statements = fs.readFileSync(0, 'utf8').split('\0').slice(0, -1);

function print(...fields) {
  const escape = (s) =>
    s === null ? '\\N' : s.replace(/[\\\t\n\r]/g, (c) => ({ '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' })[c]);
  process.stdout.write(fields.map(escape).join('\t') + '\n');
}

function show(result) {
  if (result.fields.length === 0) return;
  print('columns', ...result.fields.map((f) => f.name));
  for (const row of result.rows) print('row', ...row);
}

async function run(client, query) {
  try {
    const results = await client.query(query);
    for (const result of [results].flat()) show(result);
  } catch (error) {
    if (error.code === undefined) throw error;
    print('error', error.code, error.message);
  }
}

// What node-postgres sends as it is: a Buffer goes out in binary.
const binary = {
  integer: (text) => { const b = Buffer.alloc(4); b.writeInt32BE(Number(text)); return b; },
  date: (text) => binary.integer((Date.parse(text + 'T00:00:00Z') - Date.UTC(2000, 0, 1)) / 86400000),
  text: (text) => Buffer.from(text),
};

// bound splits a statement from its parameters.
function bound(statement, isBinary) {
  const [text, ...parameters] = statement.split('\x1f');
  const values = parameters.map((p) => {
    const [, type, value] = p.match(/^(\w+) (.*)$/s);
    return isBinary ? binary[type](value) : type === 'integer' ? Number(value) : value;
  });
  return { text, values };
}

async function main() {
  const client = new Client();
  await client.connect();
  const text = { rowMode: 'array', types: { getTypeParser: () => (value) => value } };
  switch (mode) {
    case 'simple':
      for (const sql of statements) await run(client, { ...text, text: sql });
      break;
    case 'extended':
      for (const [i, sql] of statements.entries()) await run(client, { ...text, text: sql, name: `statement ${i}` });
      break;
    case 'bound':
    case 'bound-binary':
      for (const [i, sql] of statements.entries())
        await run(client, { ...text, ...bound(sql, mode === 'bound-binary'), name: `statement ${i}` });
      break;
    case 'together':
      await run(client, { ...text, text: statements.join(';\n') });
      break;
    default:
      throw new Error(`node-postgres has no mode ${mode}`);
  }
  await client.end();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
