// Starts an update with the pipelines client of the Databricks SDK, waits until
// it has ended, and prints what the client's calls have returned as one JSON
// object. The pipeline and a table to refresh are the arguments. DATABRICKS_HOST and
// DATABRICKS_TOKEN are the SDK's own settings; it calls port 443 of that host
// whatever it is told, which the agent turns into the address API_ADDRESS, a
// host:port whose certificate is that of API_CERTIFICATE.
'use strict';

const fs = require('node:fs');
const https = require('node:https');
const tls = require('node:tls');
const { WorkspaceClient } = require('@databricks/sdk-experimental');

const [pipeline_id, table] = process.argv.slice(2);
const [host, port] = process.env.API_ADDRESS.split(':');
const ca = fs.readFileSync(process.env.API_CERTIFICATE);

const agent = new https.Agent({ keepAlive: false });
agent.createConnection = (options) => tls.connect({ ...options, host, port: Number(port), servername: '', ca });

async function all(iterable) {
  const list = [];
  for await (const entry of iterable) list.push(entry);
  return list;
}

async function failure(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return { status: error.statusCode, code: error.errorCode, message: error.message };
  }
}

async function main() {
  const { pipelines } = new WorkspaceClient({}, { agent });
  const { update_id } = await pipelines.startUpdate({ pipeline_id, refresh_selection: [table], cause: 'JOB_TASK' });
  let update;
  do {
    await new Promise((resolve) => setTimeout(resolve, 50));
    ({ update } = await pipelines.getUpdate({ pipeline_id, update_id }));
  } while (!['COMPLETED', 'FAILED', 'CANCELED'].includes(update.state));
  const stopped = await (await pipelines.stop({ pipeline_id })).wait();
  console.log(JSON.stringify({
    update,
    stopped: stopped.state,
    pipeline: await pipelines.get({ pipeline_id }),
    pipelines: await all(pipelines.listPipelines({})),
    updates: (await pipelines.listUpdates({ pipeline_id })).updates,
    events: (await pipelines._listPipelineEvents({ pipeline_id })).events,
    missing: await failure(pipelines.get({ pipeline_id: 'nothing' })),
    refused: await failure(pipelines.startUpdate({ pipeline_id, refresh_selection: ['no_such_table'] })),
  }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
